# Shell: not one remark of shellcheck, in the program either.
shellcheck shelf/*.sh "$PROGRAMS/pages.sh"
chmod +x shelf/*.sh
exec bash "$PROGRAMS/pages.sh"
