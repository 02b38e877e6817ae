# PHP: every notice is shown, and none is there.
cp "$PROGRAMS/pages.php" .
exec php -d error_reporting=-1 -d display_errors=stderr pages.php
