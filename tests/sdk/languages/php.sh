# PHP: every notice is shown, and none is there.
source "$TOOLS/follow_readme.sh"
strict=(php -d error_reporting=-1 -d display_errors=stderr)
while read -r file; do "${strict[@]}" -l "$file" > /dev/null; done < <(find quakes planets things nasty alone loner -name '*.php')
for file in nasty/autoload.php loner/Loner.php; do "${strict[@]}" "$file"; done
for package in quakes planets things nasty; do
    said="$("${strict[@]}" "$package/tests/client_test.php")"
    [[ "$said" == passed ]] || { echo "$package: $said" >&2; exit 1; }
done
for package in quakes planets; do follow_readme "$package"; done
sed 's#/../autoload.php#/Alone.php#; s/\bQuakes\b/Alone/g' quakes/examples/first_call.php > alone/first_call.php
"${strict[@]}" alone/first_call.php
for snippet in quakes things; do
    { printf '<?php\nrequire "%s/autoload.php";\n' "$snippet"; cat "snippets/$snippet"; } > "snippet-$snippet.php"
    "${strict[@]}" "snippet-$snippet.php"
done
for program in exact main; do cp "$PROGRAMS/$program.php" .; done
$BESET "${strict[@]}" exact.php
exec $BESET "${strict[@]}" main.php
