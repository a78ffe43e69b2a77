package hilt

// Messages of the conversation, as hosts of both dialects write them.

import (
	"encoding/json"
	"strings"
)

// Message is something that was said in the conversation.
type Message struct {
	// Role is "user", "assistant" or "tool_result".
	Role string
	// Data is all of it, as it came; what goes back keeps what is not understood here.
	Data json.RawMessage
}

// NewMessage is a text that the user, or else the assistant, says.
func NewMessage(role, text string) Message {
	content := any(text)
	if role == "assistant" {
		content = []obj{{"type": "text", "text": text}}
	}
	data, _ := json.Marshal(obj{"role": role, "content": content}) // texts can always be written
	return Message{role, data}
}

// Text is all the text of the message.
func (m Message) Text() string {
	var told struct {
		Content json.RawMessage `json:"content"`
		Blocks  json.RawMessage `json:"blocks"`
	}
	_ = json.Unmarshal(m.Data, &told) // what cannot be read has no text
	if text := textOf(told.Content); text != "" {
		return text
	}
	return textOf(told.Blocks)
}

func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks)
	texts := []string{}
	for _, block := range blocks {
		if block.Text != "" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// UnmarshalJSON takes a message as it is, or as {"type", "data"}.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var told struct {
		Type       string          `json:"type"`
		Data       json.RawMessage `json:"data"`
		Role       string          `json:"role"`
		ToolCallID string          `json:"toolCallId"`
		Model      string          `json:"model"`
		Provider   string          `json:"provider"`
	}
	if err := json.Unmarshal(raw, &told); err != nil {
		return err
	}
	if told.Data != nil {
		*m = Message{told.Type, told.Data}
		return nil
	}
	switch {
	case told.Role != "":
	case told.ToolCallID != "":
		told.Role = "tool_result"
	case told.Model != "" || told.Provider != "":
		told.Role = "assistant"
	default:
		told.Role = "user"
	}
	*m = Message{told.Role, append(json.RawMessage(nil), raw...)}
	return nil
}

// MarshalJSON writes it as {"type", "data"}, which every host takes.
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(obj{"type": m.Role, "data": m.Data})
}
