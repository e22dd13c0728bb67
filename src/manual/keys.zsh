_q_key() {
    emulate -L zsh
    [[ $BUFFER == *[^[:space:]]* ]] || return 0
    local text
    # Ctrl-C ends q, and leaves the line.
    trap : INT
    zle -R 'q: waiting for the command'
    if text=$(_q_command "$BUFFER"); then
        BUFFER=$text CURSOR=$#text
    else
        zle -M -- "${text:-q: interrupted}"
    fi
}

zle -N _q_key
for _q_keymap in emacs viins; do
    bindkey -M $_q_keymap "${Q_KEY:-^Xq}" _q_key
done
unset _q_keymap
