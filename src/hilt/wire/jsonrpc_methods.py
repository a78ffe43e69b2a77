"""Every method of the jsonrpc dialect: who calls it, whether it is answered, and what it carries."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.wire import jsonrpc_services as s
from hilt.wire import jsonrpc_types as t

Direction: TypeAlias = Literal["host->ext", "ext->host", "both"]


class Method(Struct, frozen=True):
    name: str
    direction: Direction
    params: type[Struct]
    result: type[Struct] | None = None
    """None for a notice: nobody answers it."""
    added: bool = False
    """Hilt's own, unknown to the reference."""

    @property
    def kind(self) -> Literal["request", "notice"]:
        return "notice" if self.result is None else "request"


def _host(name: str, params: type[Struct] = t.Empty, result: type[Struct] = t.Empty) -> Method:
    return Method(f"host/{name}", "ext->host", params, result)


_LIFECYCLE = (
    Method("initialize", "host->ext", t.Initialize, t.InitializeResult),
    Method("shutdown", "host->ext", t.Empty),
    Method("$/cancelRequest", "both", t.CancelRequest),
)

_REGISTRATIONS = (
    Method("register/tool", "ext->host", t.RegisterTool),
    Method("register/command", "ext->host", t.RegisterCommand),
    Method("register/promptSection", "ext->host", t.RegisterPromptSection),
    Method("register/interceptor", "ext->host", t.RegisterInterceptor),
    Method("register/eventHandler", "ext->host", t.RegisterEventHandler),
    Method("register/shortcut", "ext->host", t.RegisterShortcut),
    Method("register/messageHook", "ext->host", t.RegisterMessageHook),
    Method("register/inputTransformer", "ext->host", t.RegisterInputTransformer),
    Method("register/compactor", "ext->host", t.RegisterCompactor),
    Method("register/provider", "ext->host", t.RegisterProvider),
)

_CALLBACKS = (
    Method("tool/execute", "host->ext", t.ToolExecute, t.ToolExecuteResult),
    Method("command/execute", "host->ext", t.CommandExecute, t.Empty),
    Method("interceptor/before", "host->ext", t.InterceptorBefore, t.InterceptorBeforeResult),
    Method("interceptor/after", "host->ext", t.InterceptorAfter, t.InterceptorAfterResult),
    Method("event/dispatch", "host->ext", t.EventDispatch, t.ActionResult),
    Method("shortcut/handle", "host->ext", t.ShortcutHandle, t.ActionResult),
    Method("messageHook/onMessage", "host->ext", t.OnMessage, t.OnMessageResult),
    Method("inputTransformer/transform", "host->ext", t.Transform, t.TransformResult),
    Method("compact/execute", "host->ext", t.Compact, t.CompactResult),
    Method("provider/stream", "host->ext", t.ProviderStream, t.ProviderStreamResult),
    Method("eventBus/event", "host->ext", t.BusEvent),
    Method("provider/delta", "ext->host", t.ProviderDelta),
)

_NOTICES = (
    Method("setWidget", "ext->host", t.SetWidget),
    Method("showOverlay", "ext->host", t.ShowOverlay),
    Method("closeOverlay", "ext->host", t.CloseOverlay),
    Method("notify", "ext->host", t.Notify),
    Method("log", "ext->host", t.Log),
    Method("showMessage", "ext->host", t.ShowMessage),
    Method("sendMessage", "ext->host", t.SendMessage),
    Method("setInputText", "ext->host", t.SetInputText),
    Method("steer", "ext->host", t.Steer),
    Method("abort", "ext->host", t.Empty),
    Method("abortWithMarker", "ext->host", t.AbortWithMarker),
)

_SERVICES = (
    _host("listTools", s.ListTools, s.ListToolsResult),
    _host("executeTool", s.ExecuteTool, s.ExecuteToolResult),
    _host("toolDefs", result=s.ToolDefsResult),
    _host("activateTool", s.ActivateTool),
    _host("setToolFilter", s.SetToolFilter),
    _host("config.get", s.ConfigGet, s.ConfigGetResult),
    _host("config.readExtension", s.ConfigReadExtension, s.ConfigReadExtensionResult),
    _host("auth.getKey", s.AuthGetKey, s.AuthGetKeyResult),
    _host("chat", s.Chat, s.ChatResult),
    _host("agent.run", s.AgentRun, s.AgentRunResult),
    _host("runBackground", s.RunBackground),
    _host("cancelBackground"),
    _host("isBackgroundRunning", result=s.IsBackgroundRunningResult),
    _host("conversationMessages", result=s.ConversationMessagesResult),
    _host("setConversationMessages", s.SetConversationMessages),
    _host("llmSnapshot", result=s.LlmSnapshotResult),
    _host("lastAssistantText", result=s.LastAssistantTextResult),
    _host("waitForIdle"),
    _host("sessions", result=s.SessionsResult),
    _host("loadSession", s.LoadSession),
    _host("forkSession", result=s.ForkSessionResult),
    _host("sessionTitle", result=s.SessionTitleResult),
    _host("setSessionTitle", s.SetSessionTitle),
    _host("sessionStats", result=s.SessionStatsResult),
    _host("appendSessionEntry", s.AppendSessionEntry),
    _host("appendCustomMessage", s.AppendCustomMessage),
    _host("setLabel", s.SetLabel),
    _host("branchSession", s.BranchSession),
    _host("branchSessionWithSummary", s.BranchSessionWithSummary),
    _host("resetSessionLeaf"),
    _host("sessionEntryInfos", result=s.SessionEntryInfosResult),
    _host("sessionFullTree", result=s.SessionFullTreeResult),
    _host("availableModels", result=s.AvailableModelsResult),
    _host("switchModel", s.SwitchModel),
    _host("syncModels", result=s.SyncModelsResult),
    _host("writeModels", s.WriteModels, s.WriteModelsResult),
    _host("showPicker", s.ShowPicker, s.ShowPickerResult),
    _host("askUser", s.AskUser, s.AskUserResult),
    _host("toggleStepMode", result=s.ToggleStepModeResult),
    _host("requestQuit"),
    _host("abort"),
    _host("hasCompactor", result=s.HasCompactorResult),
    _host("triggerCompact", result=s.TriggerCompactResult),
    _host("commands", result=s.CommandsResult),
    _host("shortcuts", result=s.ShortcutsResult),
    _host("promptSections", result=s.PromptSectionsResult),
    _host("extInfos", result=s.ExtInfosResult),
    _host("extensionsDir", result=s.ExtensionsDirResult),
    _host("undoSnapshots", result=s.UndoSnapshotsResult),
    _host("undoRestore", s.UndoRestore),
    _host("publish", s.Publish),
    _host("subscribe", s.Subscribe, s.SubscribeResult),
)

_ADDITIONS = (
    Method("panel/open", "ext->host", t.PanelContent, added=True),
    Method("panel/render", "ext->host", t.PanelContent, added=True),
    Method("panel/close", "ext->host", t.PanelClose, added=True),
    Method("panel/key", "host->ext", t.PanelKey, added=True),
    Method("panel/resize", "host->ext", t.PanelResize, added=True),
    Method("panel/closed", "host->ext", t.PanelClosed, added=True),
    Method("tool/progress", "ext->host", t.ToolProgress, added=True),
    Method("interceptor/event", "host->ext", t.InterceptorEvent, t.InterceptorEventResult, added=True),
    Method("setStatus", "ext->host", t.SetStatus, added=True),
    Method("host/unsubscribe", "ext->host", s.Unsubscribe, t.Empty, added=True),
)

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for methods in (_LIFECYCLE, _REGISTRATIONS, _CALLBACKS, _NOTICES, _SERVICES, _ADDITIONS)
        for method in methods
    }
)
