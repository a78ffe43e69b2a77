package hilt

// What tools give back.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Content is one piece of a result.
type Content struct {
	// Text is what it says, unless it is a picture.
	Text string
	// Data are the bytes of a picture.
	Data []byte
	// MIME is the type of the picture, such as image/png.
	MIME string
}

// Image is a picture, whose type is found out. It can be returned by a tool as it is.
func Image(data []byte) (Content, error) {
	for mime, begins := range map[string]string{"image/png": "\x89PNG", "image/jpeg": "\xff\xd8\xff", "image/gif": "GIF8"} {
		if bytes.HasPrefix(data, []byte(begins)) {
			return Content{Data: data, MIME: mime}, nil
		}
	}
	if len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return Content{Data: data, MIME: "image/webp"}, nil
	}
	return Content{}, errors.New("neither PNG, JPEG, GIF nor WebP: make a hilt.Content with its MIME type")
}

// ImageFile is the picture in a file.
func ImageFile(path string) (Content, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Content{}, err
	}
	block, err := Image(data)
	if err != nil {
		return Content{}, fmt.Errorf("%s: %w", path, err)
	}
	return block, nil
}

func (b Content) wire(mime string) obj {
	if b.MIME == "" {
		return obj{"type": "text", "text": b.Text}
	}
	return obj{"type": "image", mime: b.MIME, "data": base64.StdEncoding.EncodeToString(b.Data)}
}

// Result is what a tool returns when a text alone does not say it all.
type Result struct {
	// Text is what the model reads, before all of Content.
	Text    string
	Content []Content
	IsError bool
	// ErrorCode and ErrorHint are for the model too: a word such as FILE_NOT_FOUND, and what to do about it.
	ErrorCode string
	ErrorHint string
	// Structured is for programs: any JSON, kept beside the text where the host can.
	Structured any
	// Activate names deferred tools that the model may call from now on.
	Activate []string
	// Truncated is said of another tool's result: there was more.
	Truncated bool
}

func (r Result) blocks() []Content {
	if r.Text == "" {
		return r.Content
	}
	return append([]Content{{Text: r.Text}}, r.Content...)
}

func (r Result) failed() bool { return r.IsError || r.ErrorCode != "" }

// explained are its blocks with the code and the hint in the text, as hosts show them that are told them apart.
func (r Result) explained() []Content {
	if r.ErrorCode == "" && r.ErrorHint == "" {
		return r.blocks()
	}
	text := r.All()
	if r.ErrorCode != "" {
		text = "[error:" + r.ErrorCode + "] " + text
	}
	if r.ErrorHint != "" {
		text += "\nhint: " + r.ErrorHint
	}
	return replacedText(r.blocks(), text)
}

// All is the whole text of the result: that of Text and of all blocks, joined by line breaks.
func (r Result) All() string {
	texts := []string{}
	for _, block := range r.blocks() {
		if block.MIME == "" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ToolError is an error whose message the model shall read as it is, with a code and a hint.
type ToolError struct {
	Message string
	Code    string
	Hint    string
}

func (e *ToolError) Error() string { return e.Message }

func failure(err error) Result {
	var told *ToolError
	if errors.As(err, &told) {
		return Result{Text: told.Message, IsError: true, ErrorCode: told.Code, ErrorHint: told.Hint}
	}
	return Result{Text: err.Error(), IsError: true}
}

// resultOf makes a result of whatever a tool returned.
func resultOf(value any) (Result, error) {
	switch held := value.(type) {
	case nil:
		return Result{Text: "ok"}, nil
	case string:
		return Result{Text: held}, nil
	case Result:
		return structured(held)
	case *Result:
		if held == nil {
			return Result{Text: "ok"}, nil
		}
		return structured(*held)
	case Content:
		return Result{Content: []Content{held}}, nil
	case []Content:
		return Result{Content: held}, nil
	case bool, int, int64, float64:
		text, err := jsonText(held)
		return Result{Text: text}, err
	}
	text, err := jsonText(value)
	return Result{Text: text, Structured: json.RawMessage(text)}, err
}

// structured finds out now whether its data can be written, since later nobody could say whose they were.
func structured(result Result) (Result, error) {
	if result.Structured == nil {
		return result, nil
	}
	text, err := jsonText(result.Structured)
	result.Structured = json.RawMessage(text)
	return result, err
}

// readResult reads what the host says of a tool it ran, in either dialect.
func readResult(raw json.RawMessage) (Result, error) {
	var answer struct {
		Content []struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Data  []byte `json:"data"`
			MIME  string `json:"mime"`
			MIME2 string `json:"mime_type"`
		} `json:"content"`
		IsError   bool   `json:"isError"`
		IsError2  bool   `json:"is_error"`
		ErrorCode string `json:"errorCode"`
		ErrorHint string `json:"errorHint"`
		Truncated bool   `json:"truncated"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Result{}, fmt.Errorf("the host's result cannot be read: %w", err)
	}
	result := Result{
		IsError:   answer.IsError || answer.IsError2,
		ErrorCode: answer.ErrorCode,
		ErrorHint: answer.ErrorHint,
		Truncated: answer.Truncated,
	}
	for _, block := range answer.Content {
		result.Content = append(result.Content, Content{Text: block.Text, Data: block.Data, MIME: block.MIME + block.MIME2})
	}
	return result, nil
}
