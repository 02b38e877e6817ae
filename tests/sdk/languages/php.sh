# PHP: every notice is shown, and none is there.
strict=(php -d error_reporting=-1 -d display_errors=stderr)
while read -r file; do "${strict[@]}" -l "$file" > /dev/null; done < <(find quakes planets nasty -name '*.php')
"${strict[@]}" nasty/autoload.php
cp "$PROGRAMS/main.php" .
exec "${strict[@]}" main.php
