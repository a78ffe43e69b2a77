package hilt

// The services of the host, each by its name. What they do, and what they need, is in the reference of host services.

import (
	"context"
	"encoding/json"
)

// ToolInfo is a tool as the host knows it.
type ToolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Deferred    bool            `json:"deferred"`
}

type toolList struct {
	Tools []ToolInfo `json:"tools"`
}

// ListTools are the tools there are, or those that only read with the filter "background_safe".
func (h *Host) ListTools(ctx context.Context, filter string) ([]ToolInfo, error) {
	result, err := fetch[toolList](ctx, h, "host/listTools", present(obj{"filter": filter}))
	return result.Tools, err
}

// ToolDefs are the names and descriptions of all tools.
func (h *Host) ToolDefs(ctx context.Context) ([]ToolInfo, error) {
	result, err := fetch[toolList](ctx, h, "host/toolDefs", nil)
	return result.Tools, err
}

// ActivateTool shows a deferred tool whole to the model.
func (h *Host) ActivateTool(ctx context.Context, name string) error {
	return h.do(ctx, "host/activateTool", obj{"name": name})
}

// SetToolFilter leaves the model these tools only; none lifts it.
func (h *Host) SetToolFilter(ctx context.Context, names ...string) error {
	return h.do(ctx, "host/setToolFilter", obj{"names": names})
}

// Config are settings: the extension's own first, then the host's.
func (h *Host) Config(ctx context.Context, keys ...string) (map[string]any, error) {
	type values struct {
		Values map[string]any `json:"values"`
	}
	if keys == nil {
		keys = []string{}
	}
	result, err := fetch[values](ctx, h, "host/config.get", obj{"keys": keys})
	if result.Values == nil {
		result.Values = map[string]any{}
	}
	return result.Values, err
}

// ReadExtension is the text NAME.md in the data directory of an extension.
func (h *Host) ReadExtension(ctx context.Context, name string) (string, error) {
	type content struct {
		Content string `json:"content"`
	}
	result, err := fetch[content](ctx, h, "host/config.readExtension", obj{"name": name})
	return result.Content, err
}

// AuthKey is the key of a provider; empty when there is none.
func (h *Host) AuthKey(ctx context.Context, provider string) (string, error) {
	type key struct {
		Key string `json:"key"`
	}
	result, err := fetch[key](ctx, h, "host/auth.getKey", obj{"provider": provider})
	return result.Key, err
}

// ExtensionsDir is where extensions are installed.
func (h *Host) ExtensionsDir(ctx context.Context) (string, error) {
	type path struct {
		Path string `json:"path"`
	}
	result, err := fetch[path](ctx, h, "host/extensionsDir", nil)
	return result.Path, err
}

// Usage is how many tokens a service used.
type Usage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// ChatMessage is something said in a chat: by the assistant, or else by the user.
type ChatMessage struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

// ChatRequest asks a model beside the conversation.
type ChatRequest struct {
	// Text is what the user says, after all messages.
	Text     string        `json:"-"`
	Messages []ChatMessage `json:"messages"`
	System   string        `json:"system,omitempty"`
	// Model is "default", "small" or the name of one.
	Model     string `json:"model,omitempty"`
	MaxTokens int    `json:"maxTokens,omitempty"`
}

// ChatReply is the model's answer.
type ChatReply struct {
	Text  string `json:"text"`
	Usage Usage  `json:"usage"`
}

// Chat asks a model for one answer, without tools and beside the conversation.
func (h *Host) Chat(ctx context.Context, request ChatRequest) (ChatReply, error) {
	if request.Text != "" {
		request.Messages = append(request.Messages, ChatMessage{"user", request.Text})
	}
	return fetch[ChatReply](ctx, h, "host/chat", request)
}

// AgentRequest is a task for an agent of its own.
type AgentRequest struct {
	Task   string `json:"task"`
	System string `json:"system,omitempty"`
	// Tools is "background_safe" or "all".
	Tools    string `json:"tools,omitempty"`
	Model    string `json:"model,omitempty"`
	MaxTurns int    `json:"maxTurns,omitempty"`
}

// AgentReply is what the agent said, and why it ended before it was done.
type AgentReply struct {
	Text  string `json:"text"`
	Turns int    `json:"turns"`
	Usage Usage  `json:"usage"`
	Error string `json:"error"`
}

// AgentRun has an agent of its own do a task.
func (h *Host) AgentRun(ctx context.Context, request AgentRequest) (AgentReply, error) {
	return fetch[AgentReply](ctx, h, "host/agent.run", request)
}

// RunBackground starts an agent that nobody waits for.
func (h *Host) RunBackground(ctx context.Context, prompt string) error {
	return h.do(ctx, "host/runBackground", obj{"prompt": prompt})
}

// CancelBackground ends all of those.
func (h *Host) CancelBackground(ctx context.Context) error {
	return h.do(ctx, "host/cancelBackground", nil)
}

// IsBackgroundRunning tells whether there is one.
func (h *Host) IsBackgroundRunning(ctx context.Context) (bool, error) {
	type running struct {
		Running bool `json:"running"`
	}
	result, err := fetch[running](ctx, h, "host/isBackgroundRunning", nil)
	return result.Running, err
}

type messageList struct {
	Messages []Message `json:"messages"`
}

// ConversationMessages is all that was said.
func (h *Host) ConversationMessages(ctx context.Context) ([]Message, error) {
	result, err := fetch[messageList](ctx, h, "host/conversationMessages", nil)
	return result.Messages, err
}

// SetConversationMessages goes on with these in place of all that was said; none clears.
func (h *Host) SetConversationMessages(ctx context.Context, messages []Message) error {
	return h.do(ctx, "host/setConversationMessages", messageList{messages})
}

// Snapshot is what the model would be sent now.
type Snapshot struct {
	System   string     `json:"system"`
	Messages []Message  `json:"messages"`
	Tools    []ToolInfo `json:"tools"`
}

// LLMSnapshot is what the model would be sent now.
func (h *Host) LLMSnapshot(ctx context.Context) (Snapshot, error) {
	return fetch[Snapshot](ctx, h, "host/llmSnapshot", nil)
}

// LastAssistantText is the first text of the newest answer that has one.
func (h *Host) LastAssistantText(ctx context.Context) (string, error) {
	type text struct {
		Text string `json:"text"`
	}
	result, err := fetch[text](ctx, h, "host/lastAssistantText", nil)
	return result.Text, err
}

// WaitForIdle waits until nothing runs and nothing waits.
func (h *Host) WaitForIdle(ctx context.Context) error { return h.do(ctx, "host/waitForIdle", nil) }

// HasCompactor tells whether an extension offers one.
func (h *Host) HasCompactor(ctx context.Context) (bool, error) {
	type present struct {
		Present bool `json:"present"`
	}
	result, err := fetch[present](ctx, h, "host/hasCompactor", nil)
	return result.Present, err
}

// TriggerCompact makes the conversation shorter, and tells its numbers of messages before and after.
func (h *Host) TriggerCompact(ctx context.Context) (before, after int, err error) {
	type numbers struct {
		Before int `json:"before"`
		After  int `json:"after"`
	}
	result, err := fetch[numbers](ctx, h, "host/triggerCompact", nil)
	return result.Before, result.After, err
}

// ToggleStepMode has every tool call wait for the user, or no longer, and tells which.
func (h *Host) ToggleStepMode(ctx context.Context) (bool, error) {
	type mode struct {
		On bool `json:"on"`
	}
	result, err := fetch[mode](ctx, h, "host/toggleStepMode", nil)
	return result.On, err
}

// SessionInfo is a session.
type SessionInfo struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Cwd       string `json:"cwd"`
	CreatedAt string `json:"createdAt"`
	Path      string `json:"path"`
	ParentID  string `json:"parentId"`
}

// Sessions are all sessions, the newest first.
func (h *Host) Sessions(ctx context.Context) ([]SessionInfo, error) {
	type list struct {
		Sessions []SessionInfo `json:"sessions"`
	}
	result, err := fetch[list](ctx, h, "host/sessions", nil)
	return result.Sessions, err
}

// LoadSession goes on in another session.
func (h *Host) LoadSession(ctx context.Context, path string) error {
	return h.do(ctx, "host/loadSession", obj{"path": path})
}

// ForkSession goes on in a copy of the present branch, and tells where it comes from and how much is in it.
func (h *Host) ForkSession(ctx context.Context) (parent string, messages int, err error) {
	type fork struct {
		Parent string `json:"parentID"`
		Count  int    `json:"messageCount"`
	}
	result, err := fetch[fork](ctx, h, "host/forkSession", nil)
	return result.Parent, result.Count, err
}

// SessionTitle is the title of the session; empty when nobody gave it one.
func (h *Host) SessionTitle(ctx context.Context) (string, error) {
	type title struct {
		Title string `json:"title"`
	}
	result, err := fetch[title](ctx, h, "host/sessionTitle", nil)
	return result.Title, err
}

// SetSessionTitle gives the session a title.
func (h *Host) SetSessionTitle(ctx context.Context, title string) error {
	return h.do(ctx, "host/setSessionTitle", obj{"title": title})
}

// SessionStats are the numbers of the conversation.
type SessionStats struct {
	TurnCount             int     `json:"turnCount"`
	TotalInputTokens      int     `json:"totalInputTokens"`
	TotalOutputTokens     int     `json:"totalOutputTokens"`
	TotalCacheReadTokens  int     `json:"totalCacheReadTokens"`
	TotalCacheWriteTokens int     `json:"totalCacheWriteTokens"`
	TotalCost             float64 `json:"totalCost"`
	Model                 string  `json:"model"`
}

// SessionStats are the numbers of the conversation as it is.
func (h *Host) SessionStats(ctx context.Context) (SessionStats, error) {
	return fetch[SessionStats](ctx, h, "host/sessionStats", nil)
}

// AppendSessionEntry keeps a record of the extension's own, which is no part of the conversation.
func (h *Host) AppendSessionEntry(ctx context.Context, kind string, data any) error {
	return h.do(ctx, "host/appendSessionEntry", obj{"kind": kind, "data": data})
}

// AppendCustomMessage says something, as the assistant or else as the user.
func (h *Host) AppendCustomMessage(ctx context.Context, role, content string) error {
	return h.do(ctx, "host/appendCustomMessage", obj{"role": role, "content": content})
}

// SetLabel labels an entry; an empty label goes.
func (h *Host) SetLabel(ctx context.Context, target, label string) error {
	return h.do(ctx, "host/setLabel", obj{"targetId": target, "label": label})
}

// BranchSession goes on from another entry.
func (h *Host) BranchSession(ctx context.Context, entry string) error {
	return h.do(ctx, "host/branchSession", obj{"entryId": entry})
}

// BranchSessionWithSummary is the same; the summary is kept with the branch that was left.
func (h *Host) BranchSessionWithSummary(ctx context.Context, entry, summary string) error {
	return h.do(ctx, "host/branchSessionWithSummary", obj{"entryId": entry, "summary": summary})
}

// ResetSessionLeaf begins an empty conversation in the same session.
func (h *Host) ResetSessionLeaf(ctx context.Context) error {
	return h.do(ctx, "host/resetSessionLeaf", nil)
}

// SessionEntry is a record of the session.
type SessionEntry struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Children  int    `json:"children"`
	ParentID  string `json:"parentId"`
	// What follows is told of the full tree only.
	OnActivePath bool   `json:"onActivePath"`
	Depth        int    `json:"depth"`
	Preview      string `json:"preview"`
	Label        string `json:"label"`
	TokensBefore int    `json:"tokensBefore"`
}

// SessionEntryInfos are the entries from the root to where the conversation is.
func (h *Host) SessionEntryInfos(ctx context.Context) ([]SessionEntry, error) {
	type list struct {
		Entries []SessionEntry `json:"entries"`
	}
	result, err := fetch[list](ctx, h, "host/sessionEntryInfos", nil)
	return result.Entries, err
}

// SessionFullTree are all entries of the session, depth first.
func (h *Host) SessionFullTree(ctx context.Context) ([]SessionEntry, error) {
	type list struct {
		Nodes []SessionEntry `json:"nodes"`
	}
	result, err := fetch[list](ctx, h, "host/sessionFullTree", nil)
	return result.Nodes, err
}

// ModelInfo is a model that can be chosen.
type ModelInfo struct {
	ID            string  `json:"id"`
	API           string  `json:"api"`
	DisplayName   string  `json:"displayName"`
	Provider      string  `json:"provider"`
	Current       bool    `json:"current"`
	ContextWindow int     `json:"contextWindow"`
	MaxTokens     int     `json:"maxTokens"`
	Reasoning     bool    `json:"reasoning"`
	CostInput     float64 `json:"costInput"`
	CostOutput    float64 `json:"costOutput"`
}

// AvailableModels are the models that can be chosen.
func (h *Host) AvailableModels(ctx context.Context) ([]ModelInfo, error) {
	type list struct {
		Models []ModelInfo `json:"models"`
	}
	result, err := fetch[list](ctx, h, "host/availableModels", nil)
	return result.Models, err
}

// SwitchModel chooses a model, provider/id, from now on or for good.
func (h *Host) SwitchModel(ctx context.Context, model string, persist bool) error {
	return h.do(ctx, "host/switchModel", merge(obj{"modelId": model}, present(obj{"persistDefault": persist})))
}

// SyncModels reads the user's file of models again, and tells how many models there are.
func (h *Host) SyncModels(ctx context.Context) (int, error) {
	type count struct {
		Updated int `json:"updated"`
	}
	result, err := fetch[count](ctx, h, "host/syncModels", nil)
	return result.Updated, err
}

// ModelOverride is what the user's file shall say of a model.
type ModelOverride struct {
	Name          string `json:"name,omitempty"`
	ContextWindow int    `json:"contextWindow,omitempty"`
	MaxTokens     int    `json:"maxTokens,omitempty"`
}

// WriteModels puts these, by provider/id, into the user's file of models, and tells how many were written.
func (h *Host) WriteModels(ctx context.Context, overrides map[string]ModelOverride) (int, error) {
	type count struct {
		Written int `json:"modelsWritten"`
	}
	result, err := fetch[count](ctx, h, "host/writeModels", obj{"overrides": overrides})
	return result.Written, err
}

// PickItem is one of those that the user may pick.
type PickItem struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Desc  string `json:"desc,omitempty"`
}

type selection struct {
	Selected string `json:"selected"`
}

// Pick has the user pick an item, and gives its id; empty when it was dismissed.
func (h *Host) Pick(ctx context.Context, title string, items []PickItem) (string, error) {
	result, err := fetch[selection](ctx, h, "host/showPicker", obj{"title": title, "items": items})
	return result.Selected, err
}

// Ask asks the user a question, and gives the choice; empty when it was dismissed.
func (h *Host) Ask(ctx context.Context, prompt string, choices ...string) (string, error) {
	result, err := fetch[selection](ctx, h, "host/askUser", obj{"prompt": prompt, "choices": choices})
	return result.Selected, err
}

// RequestQuit asks the face to end.
func (h *Host) RequestQuit(ctx context.Context) error { return h.do(ctx, "host/requestQuit", nil) }

// Abort stops what runs, and waits until that is done.
func (h *Host) Abort(ctx context.Context) error { return h.do(ctx, "host/abort", nil) }

// CommandInfo is a slash command.
type CommandInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Commands are the slash commands there are.
func (h *Host) Commands(ctx context.Context) ([]CommandInfo, error) {
	type list struct {
		Commands []CommandInfo `json:"commands"`
	}
	result, err := fetch[list](ctx, h, "host/commands", nil)
	return result.Commands, err
}

// Shortcuts are the keys there are, each with what it does.
func (h *Host) Shortcuts(ctx context.Context) (map[string]string, error) {
	type list struct {
		Shortcuts map[string]struct {
			Description string `json:"description"`
		} `json:"shortcuts"`
	}
	result, err := fetch[list](ctx, h, "host/shortcuts", nil)
	shortcuts := map[string]string{}
	for key, about := range result.Shortcuts {
		shortcuts[key] = about.Description
	}
	return shortcuts, err
}

// SectionInfo is a section of the system prompt.
type SectionInfo struct {
	Title     string `json:"title"`
	TokenHint int    `json:"tokenHint"`
}

// PromptSections are the sections of the system prompt, in order.
func (h *Host) PromptSections(ctx context.Context) ([]SectionInfo, error) {
	type list struct {
		Sections []SectionInfo `json:"sections"`
	}
	result, err := fetch[list](ctx, h, "host/promptSections", nil)
	return result.Sections, err
}

// ExtInfo is an extension that runs.
type ExtInfo struct {
	Name          string   `json:"name"`
	Kind          string   `json:"kind"`
	Version       string   `json:"version"`
	Runtime       string   `json:"runtime"`
	Tools         []string `json:"tools"`
	Commands      []string `json:"commands"`
	Interceptors  []string `json:"interceptors"`
	EventHandlers []string `json:"eventHandlers"`
	Shortcuts     []string `json:"shortcuts"`
	MessageHooks  []string `json:"messageHooks"`
	Compactor     string   `json:"compactor"`
}

// ExtInfos are the extensions that run.
func (h *Host) ExtInfos(ctx context.Context) ([]ExtInfo, error) {
	type list struct {
		Extensions []ExtInfo `json:"extensions"`
	}
	result, err := fetch[list](ctx, h, "host/extInfos", nil)
	return result.Extensions, err
}

// UndoSnapshots are the files that the agent changed, each with its size before the last change.
func (h *Host) UndoSnapshots(ctx context.Context) (map[string]int, error) {
	type list struct {
		Snapshots map[string]int `json:"snapshots"`
	}
	result, err := fetch[list](ctx, h, "host/undoSnapshots", nil)
	return result.Snapshots, err
}

// UndoRestore puts a file back as it was before its last change.
func (h *Host) UndoRestore(ctx context.Context, path string) error {
	return h.do(ctx, "host/undoRestore", obj{"path": path})
}
