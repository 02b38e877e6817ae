# Java: every lint, each an error.
javac -Xlint:all -Werror -d classes shelf/src/main/java/shelf/*.java "$PROGRAMS/Pages.java"
exec java -cp classes Pages
