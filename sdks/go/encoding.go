package hilt

// Values into JSON, as strictly as the wire wants them: what JSON cannot hold is an error that names the member.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// encode makes one line of a value, its end included.
func encode(value any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, unwritable(value, err)
	}
	if line.Len() > maxLine {
		return nil, &TooLong{line.Len()}
	}
	return line.Bytes(), nil
}

// jsonText is a value as text for people and models.
func jsonText(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", unwritable(value, err)
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// unwritable says which member of a value it was.
func unwritable(value any, err error) error {
	place, what := blamed(reflect.ValueOf(value), "", 0)
	if what == "" {
		return fmt.Errorf("the value: JSON cannot hold it: %w", err)
	}
	if place == "" {
		place = "the value"
	}
	return errors.New(place + ": JSON cannot hold " + what)
}

const deepest = 200

// blamed finds the first member that JSON cannot hold, and says what it is.
func blamed(value reflect.Value, path string, depth int) (place, what string) {
	if depth > deepest {
		return "", "what contains itself, or is nested too deeply"
	}
	switch value.Kind() {
	case reflect.Float32, reflect.Float64:
		return path, notFinite(value.Float())
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128:
		return path, "a " + value.Type().String()
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			return blamed(value.Elem(), path, depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if place, what = blamed(value.Index(i), fmt.Sprintf("%s[%d]", path, i), depth+1); what != "" {
				return place, what
			}
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			if place, what = blamed(value.MapIndex(key), within(path, fmt.Sprint(key)), depth+1); what != "" {
				return place, what
			}
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				name = field.Name
			}
			if !field.IsExported() || name == "-" {
				continue
			}
			if place, what = blamed(value.Field(i), within(path, name), depth+1); what != "" {
				return place, what
			}
		}
	}
	return "", ""
}

func within(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func notFinite(number float64) string {
	switch {
	case math.IsNaN(number):
		return "NaN"
	case math.IsInf(number, 1):
		return "Infinity"
	case math.IsInf(number, -1):
		return "-Infinity"
	}
	return ""
}
