# Java: every lint, each an error.
javac -Xlint:all -Werror -d classes "$PACKAGE"/src/main/java/"$PACKAGE"/*.java "$PROGRAMS/${PROGRAM^}.java"
exec java -cp classes "${PROGRAM^}"
