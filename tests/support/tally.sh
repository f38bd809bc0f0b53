# tests/support/tally.sh - counts tests for a shell script that sources it.
#
#   check NAME COMMAND...   one test: its output is shown only when it fails
#   skip REASON             one test that cannot run here
#   tally                   the closing line; status 1 if any test failed
passed=0
failed=0
skipped=0

check()
{
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok    $name"
        passed=$((passed + 1))
    else
        echo "FAIL  $name"
        printf '%s\n' "$output" | sed 's/^/      /'
        failed=$((failed + 1))
    fi
}

skip()
{
    echo "SKIPPED: $1"
    skipped=$((skipped + 1))
}

tally()
{
    local more=
    [ $skipped = 0 ] || more=", $skipped skipped"
    echo "$passed passed, $failed failed$more"
    [ $failed = 0 ]
}
