# Java: every lint, each an error.
source "$TOOLS/jvm.sh"
javac "${SHORT[@]/#/-J}" -Xlint:all -Werror -d classes "$PACKAGE"/src/main/java/"$PACKAGE"/*.java "$PROGRAMS/${PROGRAM^}.java"
exec java "${SHORT[@]}" -cp classes "${PROGRAM^}"
