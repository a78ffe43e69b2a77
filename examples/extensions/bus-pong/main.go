// The other half of a pair that talks over hilt's bus: it hears `ping`, and answers on `pong`.
package main

import (
	"context"
	"encoding/json"

	hilt "hilt-sdk"
)

type message struct {
	Text string `json:"text"`
}

func extension() *hilt.Extension {
	ext := hilt.New("bus-pong", "1.0.0")
	ext.OnReady(func() error {
		_, err := ext.Host().Subscribe(context.Background(), "ping", func(data json.RawMessage) {
			var heard message
			if json.Unmarshal(data, &heard) != nil {
				return // anybody may publish anything
			}
			if err := ext.Host().Publish(context.Background(), "pong", message{"pong: " + heard.Text}); err != nil {
				ext.Log(err.Error(), hilt.LevelError)
			}
		})
		return err
	})
	return ext
}

func main() { extension().Main() }
