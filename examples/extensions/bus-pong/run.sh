#!/bin/sh
# Builds what has changed since the last start, and becomes the extension. What the compiler says is in its log.
go build -o bin/bus-pong . && exec bin/bus-pong
