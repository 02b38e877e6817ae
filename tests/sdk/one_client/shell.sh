# Shell: not one remark of shellcheck, in the program either.
shellcheck "$PACKAGE"/*.sh "$PROGRAMS/$PROGRAM.sh"
chmod +x "$PACKAGE"/*.sh
exec bash "$PROGRAMS/$PROGRAM.sh"
