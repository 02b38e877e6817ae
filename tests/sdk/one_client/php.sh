# PHP: every notice is shown, and none is there.
cp "$PROGRAMS/$PROGRAM.php" .
exec php -d error_reporting=-1 -d display_errors=stderr "$PROGRAM.php"
