// A tool that takes its time: it reports progress, and stops at once when it is cancelled.
package main

import (
	"fmt"
	"time"

	hilt "hilt-sdk"
)

type arguments struct {
	Steps int `json:"steps" help:"how many steps to take" min:"1" max:"1000"`
	MS    int `json:"ms,omitempty" help:"how long each takes, in milliseconds" default:"1000" max:"60000"`
}

func slow(call *hilt.Call, args arguments) (string, error) {
	for step := 1; step <= args.Steps; step++ {
		if call.Wait(time.Duration(args.MS) * time.Millisecond) {
			return "", fmt.Errorf("cancelled after %d of %d steps", step-1, args.Steps)
		}
		call.Progress(fmt.Sprintf("step %d of %d\n", step, args.Steps))
	}
	return fmt.Sprintf("took %d steps", args.Steps), nil
}

func extension() *hilt.Extension {
	ext := hilt.New("slow-tool", "1.0.0")
	hilt.Tool(ext, "slow", "Work for a while, step by step.", slow)
	return ext
}

func main() { extension().Main() }
