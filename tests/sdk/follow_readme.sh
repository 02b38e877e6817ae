# shellcheck shell=bash disable=SC2016
# Sourced: does in a package what its README says, line by line. The environment is set already.
follow_readme() (
    cd "$1" || return
    commands="$(sed -n '/^```sh$/,/^```$/{/^```/d; /^export /d; p}' README.md)"
    [[ -n "$commands" ]]
    eval "$commands"
)
