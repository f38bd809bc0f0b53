# Files made to lead astray: ties that are none, records of later versions, metadata in odd places.
for file in "$GOLDEN"/ztensor/crafted/*.zt; do
    golden "crafted/${file##*/}"
done
t convert -q tied_other_endianness.zt o.zt
t diff tied_other_endianness.zt o.zt
t convert -q tied_other_type.zt o.safetensors
t diff tied_other_type.zt o.safetensors
t convert -q -f --checksum crc32c tied_bad_checksum.zt o.zt
t convert -q -f tied_by_note_unreadable.zt o.zt
t ls -l tied_across_another_type.zt
t ls -l tied_to_a_part.zt
t diff plain.zt zstd_longer_than_shape.zt
t convert -q -f compound_unknown_checksum.zt o.zt
t ls record_with_later_type.zt
t ls metadata_in_two_places.zt
t meta -q file_metadata_in_second_entry.zt --set k=v
t meta file_metadata_in_second_entry.zt
t meta -q record_with_later_key.zt --set k=v
grep -c future record_with_later_key.zt
t meta plain.zt --tensor w --set size=9
t convert -n --compress zstd plain.zt new.zt
t convert -n plain.zt o.zt
exit 0
