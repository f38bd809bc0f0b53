# formats, types, datatypes and version say what this build can do.
t formats
t formats --json
t types
tenon types --json | head -n 3
t datatypes | sed -n '1,3p;/mxfp4/p;/nvfp4/p;/mx9/p'
tenon datatypes --json | grep '"mxfp4"'
t version | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
t --version | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
t version --json | sed 's/[0-9][0-9]*\(\.[0-9][0-9]*\)\{1,\}/N.N/g'
