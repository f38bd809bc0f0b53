# formats, types and version say what this build can do.
t formats
t formats --json
t types
tenon types --json | head -n 3
t version | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
t --version | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
t version --json | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
