# complete.zsh FOLDER LINE - what zsh offers behind LINE, one word per line, with the completions of FOLDER.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath) && autoload -Uz compinit && compinit -u -D"
# Each word that a completion would add is printed behind "<" instead.
zpty -w shell 'compadd() { local -a words; builtin compadd -O words "$@"; print -l -- "" "${words[@]/#/<}" }'
zpty -w shell 'tell() { zle complete-word; print -l "" "<do""ne" }; zle -N tell; bindkey "^I" tell; print "rea""dy"'
zpty -r shell line '*ready*'
zpty -n -w shell "$2"$'\t'
zpty -r shell line '*<done*'
zpty -d shell
print -r -- "$line" | tr -d '\r' | sed -n '/^<done/d; s/^<//p' | sort -u
