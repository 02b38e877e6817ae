# Java: every lint, each an error.
source "$TOOLS/jvm.sh"
source "$TOOLS/follow_readme.sh"
mapfile -t sources < <(find quakes nasty planets things alone loner -name '*.java' -not -path '*/examples/*')
mkdir -p programs
for snippet in quakes things; do
    {
        printf 'import %s.*;\n\nfinal class Snippet_%s {\npublic static void main(String[] arguments) {\n' "$snippet" "$snippet"
        cat "snippets/$snippet"
        printf '}\n}\n'
    } > "programs/Snippet_$snippet.java"
done
sed 's/\bquakes\b/alone/g' quakes/examples/FirstCall.java > programs/FirstCall.java
javac "${SHORT[@]/#/-J}" -Xlint:all -Werror -d classes "${sources[@]}" programs/*.java "$PROGRAMS"/{Main,Exact}.java
for package in quakes planets things nasty; do
    javac "${SHORT[@]/#/-J}" -Xlint:all -Werror -cp classes -d "examples-of-$package" "$package/examples/FirstCall.java"
    java "${SHORT[@]}" -ea -cp classes "$package.ClientTest"
done
for package in quakes planets; do follow_readme "$package"; done
for program in FirstCall Snippet_quakes Snippet_things; do java "${SHORT[@]}" -cp classes "$program"; done
for program in Exact Main; do $BESET java "${SHORT[@]}" $JVM_PROXY -cp classes "$program"; done
