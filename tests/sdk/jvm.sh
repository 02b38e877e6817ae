# shellcheck shell=bash disable=SC2034
# Sourced: for a Java machine that runs for seconds. Without its second compiler, which keeps a core busy beside the program and pays
# off after minutes, and without the collector for large heaps.
SHORT=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
