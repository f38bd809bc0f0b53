# compliance tries out every requirement; its temporary files are gone afterwards.
mkdir tmp
export TMPDIR=$PWD/tmp
t compliance --level 1
t compliance --level 2 | sed -n '1p;$p'
t compliance
t compliance --level 1 --json
ls tmp
TMPDIR=$PWD/nowhere t compliance 2>&1 | sed "s|$PWD|.|"
