# Fish completion for tenon(1).  The tool itself says what could follow: "tenon complete WORD...".

function __tenon_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (tenon complete $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':folders'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end

complete -c tenon -f -a '(__tenon_complete)'
