# Java: every lint, each an error.
mapfile -t sources < <(find quakes nasty planets -name '*.java' -not -path '*/examples/*')
javac -Xlint:all -Werror -d classes "${sources[@]}" "$PROGRAMS/Main.java"
for package in quakes planets nasty; do
    javac -Xlint:all -Werror -cp classes -d "examples-of-$package" "$package/examples/FirstCall.java"
done
exec java -cp classes Main
