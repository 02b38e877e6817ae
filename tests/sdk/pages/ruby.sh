# Ruby: not one warning.
exec ruby -w -I shelf/lib "$PROGRAMS/pages.rb"
