# Ruby: not one warning.
exec ruby -w -I "$PACKAGE/lib" "$PROGRAMS/$PROGRAM.rb"
