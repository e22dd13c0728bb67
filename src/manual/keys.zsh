_@NAME@_key() {
    local code=$?
    emulate -L zsh
    local text
    if [[ $BUFFER != *[^[:space:]]* ]]; then
        # A request to be read and changed. Another press asks.
        text=$(fc -ln -1 2>/dev/null)
        [[ -z $text ]] || BUFFER="fix: ${text//[[:cntrl:]]/ }, exit status $code" CURSOR=$#BUFFER
        return 0
    fi
    # Ctrl-C ends q, and leaves the line.
    trap : INT
    zle -R 'q: waiting for the command'
    if text=$(_@NAME@_command "$BUFFER"); then
        BUFFER=$text CURSOR=$#text
    else
        zle -M -- "${text:-q: interrupted}"
    fi
}

zle -N _@NAME@_key
for _q_keymap in emacs viins; do
    bindkey -M $_q_keymap "${Q_KEY:-^Xq}" _@NAME@_key
done
unset _q_keymap
