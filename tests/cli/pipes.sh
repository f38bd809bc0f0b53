# A closed pipe ends a listing quietly; a full disk behind stdout is status 3.
header=
for i in $(seq 3000); do
    header+=",\"tensor.with.a.rather.long.name.$i\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"
done
safetensors many.safetensors "{${header#,}}" ''
tenon ls many.safetensors | head -n 1
tenon ls --json many.safetensors | head -c 20
echo
for command in 'ls many.safetensors' 'ls --json many.safetensors' 'types' 'version' '--help' 'verify many.safetensors'; do
    tenon $command >/dev/full
    echo "$command: exit $?"
done
