"""What every method of the jsonrpc dialect carries, as it stands on the wire: params, and the result of requests.

Typed out from the protocol's description, in the order in which hilt writes the members.
"""

from typing import NamedTuple

USER = '{"role":"user","content":"look at a.txt","timestamp":"2026-05-01T10:00:00Z"}'
ASSISTANT = (
    '{"role":"assistant","content":[{"type":"thinking","thinking":"…"},{"type":"text","text":"reading"},'
    '{"type":"tool_call","id":"call_1","name":"read","arguments":{"path":"a.txt"}}],"model":"m1","provider":"p1",'
    '"usage":{"inputTokens":10,"outputTokens":3,"cacheReadTokens":0,"cacheWriteTokens":0,"cost":0.001},'
    '"stopReason":"toolUse","timestamp":"2026-05-01T10:00:02Z"}'
)
TOOL_RESULT = (
    '{"role":"tool_result","toolCallId":"call_1","toolName":"read","content":[{"type":"text","text":"1\\thello\\n"}],'
    '"isError":false,"timestamp":"2026-05-01T10:00:02Z"}'
)
BARE = f"[{USER},{ASSISTANT},{TOOL_RESULT}]"
WRAPPED = (
    f'[{{"type":"user","data":{USER}}},{{"type":"assistant","data":{ASSISTANT}}},'
    f'{{"type":"tool_result","data":{TOOL_RESULT}}}]'
)
TOOL = '{"name":"add","description":"Adds","parameters":{"type":"object"}}'
PANEL = '{"panel_id":"p","title":"T","lines":["one","two"],"footer":"esc closes"}'
ACTION = '{"action":{"type":"setStatus","payload":{"key":"guardrail","text":"ok"}}}'


class Example(NamedTuple):
    method: str
    params: str
    result: str = ""
    """Empty for a notice."""


EXAMPLES = (
    Example(
        "initialize",
        '{"protocolVersion":"5","cwd":"/home/u/proj","configDir":"/home/u/.config/x/demo",'
        '"capabilities":["panel/open"],"host":"hilt","hostVersion":"1.0"}',
        '{"name":"demo","version":"0.1.0"}',
    ),
    Example("shutdown", "{}"),
    Example("$/cancelRequest", '{"id":8}'),
    # Registrations
    Example(
        "register/tool",
        '{"name":"add","description":"Adds","parameters":{"type":"object"},"promptHint":"h","deferred":true,'
        '"interruptBehavior":"block"}',
    ),
    Example("register/command", '{"name":"demo","description":"d","immediate":true}'),
    Example("register/promptSection", '{"title":"T","content":"C","order":5,"tokenHint":9}'),
    Example("register/interceptor", '{"name":"gate","priority":2000,"events":["tool_call","turn_start"]}'),
    Example("register/eventHandler", '{"name":"watch","priority":100,"events":["EventTurnEnd"]}'),
    Example("register/shortcut", '{"key":"ctrl+g","description":"d"}'),
    Example("register/messageHook", '{"name":"h","priority":-3}'),
    Example("register/inputTransformer", '{"name":"x","priority":1}'),
    Example("register/compactor", '{"name":"rolling","threshold":50000}'),
    Example(
        "register/provider",
        '{"api":"mine","models":[{"id":"m","name":"M","contextWindow":8192,"maxTokens":512,"reasoning":true,'
        '"cost":{"input":1.5,"output":2.0,"cacheRead":0.1,"cacheWrite":0.2}}]}',
    ),
    # Callbacks
    Example(
        "tool/execute",
        '{"callId":"call_1","name":"add","args":{"a":1}}',
        '{"content":[{"type":"text","text":"2"},{"type":"image","data":"AAAA","mime":"image/png"}],"isError":true,'
        '"errorCode":"CUSTOM_X","errorHint":"do y"}',
    ),
    Example("command/execute", '{"name":"demo","args":"a b"}', "{}"),
    Example(
        "interceptor/before",
        '{"name":"gate","toolName":"add","args":{"a":1},"callId":"call_1","origin":"other"}',
        '{"allow":true,"args":{"a":2},"preview":"why"}',
    ),
    Example(
        "interceptor/after",
        '{"name":"gate","toolName":"add","details":{"content":[{"type":"text","text":"2"}]},"callId":"call_1",'
        '"content":[{"type":"text","text":"2"},{"type":"image","mime":"image/png","index":1}],"isError":true}',
        '{"details":{"x":1},"content":"3","isError":false}',
    ),
    Example(
        "event/dispatch",
        '{"type":"EventToolEnd","data":{"ToolCallID":"call_1","ToolName":"add","Result":null,"IsError":false}}',
        ACTION,
    ),
    Example("shortcut/handle", '{"key":"ctrl+g"}', ACTION),
    Example("messageHook/onMessage", '{"message":"hi"}', '{"injection":"extra context"}'),
    Example("inputTransformer/transform", '{"input":"hi"}', '{"output":"ho","handled":true}'),
    Example("compact/execute", f'{{"messages":{WRAPPED}}}', f'{{"messages":{WRAPPED}}}'),
    Example(
        "provider/stream",
        '{"requestId":6,"model":{"id":"m1","name":"M1","api":"openai","provider":"p1","reasoning":false,'
        '"contextWindow":8192,"maxTokens":512,"cost":{"input":1.0,"output":2.0,"cacheRead":0.0,"cacheWrite":0.0},'
        f'"baseUrl":"http://127.0.0.1:9","headers":{{"a":"b"}}}},"system":"S","messages":{BARE},'
        '"options":{"temperature":0.5,"maxTokens":99,"thinking":"low","headers":{"c":"d"}},'
        f'"tools":[{TOOL}]}}',
        f'{{"message":{ASSISTANT},"error":"x"}}',
    ),
    Example("eventBus/event", '{"topic":"tp","subscriptionId":178,"data":{"x":1}}'),
    Example(
        "provider/delta",
        '{"requestId":6,"type":"toolcall_end","index":1,"delta":"d",'
        '"tool":{"id":"c1","name":"add","arguments":"{\\"a\\":1}"}}',
    ),
    # Notices
    Example("setWidget", '{"key":"k","placement":"above-input","content":"c"}'),
    Example("showOverlay", '{"key":"k","title":"T","content":"c","anchor":"top-left","width":"50%"}'),
    Example("closeOverlay", '{"key":"k"}'),
    Example("notify", '{"message":"m","level":"warn"}'),
    Example("log", '{"level":"debug","message":"m"}'),
    Example("showMessage", '{"text":"t"}'),
    Example("sendMessage", '{"content":"c"}'),
    Example("setInputText", '{"text":"t"}'),
    Example("steer", '{"content":"c"}'),
    Example("abort", "{}"),
    Example("abortWithMarker", '{"reason":"r"}'),
    # Services: tools
    Example(
        "host/listTools",
        '{"filter":"background_safe"}',
        f'{{"tools":[{TOOL},{{"name":"b","description":"","parameters":null,"deferred":true}}]}}',
    ),
    Example(
        "host/executeTool",
        '{"name":"read","args":{"path":"x"},"callId":"c"}',
        '{"content":[{"type":"text","text":"x"}],"isError":true,"errorCode":"TIMEOUT","errorHint":"h"}',
    ),
    Example("host/toolDefs", "{}", '{"tools":[{"name":"read","description":"d"}]}'),
    Example("host/activateTool", '{"name":"x"}', "{}"),
    Example("host/setToolFilter", '{"names":["read"]}', "{}"),
    # Configuration and keys
    Example("host/config.get", '{"keys":["smallModel"]}', '{"values":{"smallModel":""}}'),
    Example("host/config.readExtension", '{"name":"demo"}', '{"content":"# x"}'),
    Example("host/auth.getKey", '{"provider":"openai"}', '{"key":"sk"}'),
    # Models at work
    Example(
        "host/chat",
        '{"system":"S","messages":[{"role":"user","content":"hi"}],"model":"small","maxTokens":9}',
        '{"text":"ho","usage":{"input":1,"output":2}}',
    ),
    Example(
        "host/agent.run",
        '{"system":"S","task":"t","tools":"all","model":"small","maxTurns":3}',
        '{"text":"ho","turns":2,"usage":{"input":1,"output":2}}',
    ),
    Example("host/runBackground", '{"prompt":"p"}', "{}"),
    Example("host/cancelBackground", "{}", "{}"),
    Example("host/isBackgroundRunning", "{}", '{"running":true}'),
    # The conversation
    Example("host/conversationMessages", "{}", f'{{"messages":{BARE}}}'),
    Example("host/setConversationMessages", f'{{"messages":{WRAPPED}}}', "{}"),
    Example("host/llmSnapshot", "{}", f'{{"system":"S","messages":{BARE},"tools":[{TOOL}]}}'),
    Example("host/lastAssistantText", "{}", '{"text":"t"}'),
    Example("host/waitForIdle", "{}", "{}"),
    # Sessions
    Example(
        "host/sessions",
        "{}",
        '{"sessions":[{"id":"i","title":"t","cwd":"/w","createdAt":"2026-05-01T10:00:00Z","path":"/p",'
        '"parentId":"j"}]}',
    ),
    Example("host/loadSession", '{"path":"/p"}', "{}"),
    Example("host/forkSession", "{}", '{"parentID":"i","messageCount":3}'),
    Example("host/sessionTitle", "{}", '{"title":""}'),
    Example("host/setSessionTitle", '{"title":"t"}', "{}"),
    Example(
        "host/sessionStats",
        "{}",
        '{"turnCount":1,"totalInputTokens":2,"totalOutputTokens":3,"totalCacheReadTokens":4,'
        '"totalCacheWriteTokens":5,"totalCost":0.5,"model":"p/m"}',
    ),
    Example("host/appendSessionEntry", '{"kind":"ext:x","data":[1,null]}', "{}"),
    Example("host/appendCustomMessage", '{"role":"assistant","content":"c"}', "{}"),
    Example("host/setLabel", '{"targetId":"t","label":"l"}', "{}"),
    Example("host/branchSession", '{"entryId":"e"}', "{}"),
    Example("host/branchSessionWithSummary", '{"entryId":"e","summary":"s"}', "{}"),
    Example("host/resetSessionLeaf", "{}", "{}"),
    Example(
        "host/sessionEntryInfos",
        "{}",
        '{"entries":[{"id":"b","type":"user","timestamp":"2026-05-01T10:00:00Z","children":1,"parentId":"a"}]}',
    ),
    Example(
        "host/sessionFullTree",
        "{}",
        '{"nodes":[{"id":"b","type":"compact","timestamp":"2026-05-01T10:00:00Z","children":1,"onActivePath":true,'
        '"depth":2,"parentId":"a","preview":"p...","label":"l","tokensBefore":9}]}',
    ),
    # The catalogue of models
    Example(
        "host/availableModels",
        "{}",
        '{"models":[{"id":"m","api":"openai","displayName":"p/M","provider":"p","current":true,"contextWindow":1,'
        '"maxTokens":2,"reasoning":true,"costInput":0.5,"costOutput":1.5}]}',
    ),
    Example("host/switchModel", '{"modelId":"p/m","persistDefault":true}', "{}"),
    Example("host/syncModels", "{}", '{"updated":3}'),
    Example(
        "host/writeModels",
        '{"overrides":{"p/m":{"name":"M","contextWindow":1,"maxTokens":2},"p/n":{}}}',
        '{"modelsWritten":2}',
    ),
    # Asking the user, and control
    Example("host/showPicker", '{"title":"t","items":[{"id":"i","label":"l","desc":"d"}]}', '{"selected":"i"}'),
    Example("host/askUser", '{"prompt":"p","choices":["y","n"]}', '{"selected":"","cancelled":true}'),
    Example("host/toggleStepMode", "{}", '{"on":true}'),
    Example("host/requestQuit", "{}", "{}"),
    Example("host/abort", "{}", "{}"),
    Example("host/hasCompactor", "{}", '{"present":false}'),
    Example("host/triggerCompact", "{}", '{"before":9,"after":2}'),
    # What is registered
    Example("host/commands", "{}", '{"commands":[{"name":"n","description":"d"}]}'),
    Example("host/shortcuts", "{}", '{"shortcuts":{"ctrl+g":{"description":"d"}}}'),
    Example("host/promptSections", "{}", '{"sections":[{"title":"t","tokenHint":3}]}'),
    Example(
        "host/extInfos",
        "{}",
        '{"extensions":[{"name":"n","kind":"external","version":"1","runtime":"python","tools":["t"],"commands":["c"],'
        '"interceptors":["i"],"eventHandlers":["e"],"shortcuts":["s"],"messageHooks":["m"],"compactor":"k"}]}',
    ),
    Example("host/extensionsDir", "{}", '{"path":"/x"}'),
    # Undo and the bus
    Example("host/undoSnapshots", "{}", '{"snapshots":{"/a":12}}'),
    Example("host/undoRestore", '{"path":"/a"}', "{}"),
    Example("host/publish", '{"topic":"tp","data":{"x":1}}', "{}"),
    Example("host/subscribe", '{"topic":"tp"}', '{"subscriptionId":178}'),
    # Hilt's own
    Example("panel/open", PANEL),
    Example("panel/render", PANEL),
    Example("panel/close", '{"panel_id":"p"}'),
    Example("panel/key", '{"panel_id":"p","key":"rune","text":"x"}'),
    Example("panel/resize", '{"panel_id":"p","width":80,"height":24}'),
    Example("panel/closed", '{"panel_id":"p"}'),
    Example("tool/progress", '{"callId":"call_1","text":"half"}'),
    Example(
        "interceptor/event",
        '{"name":"gate","event":"before_agent_start","step":1,"text":"t","systemPrompt":"","sessionId":"s",'
        '"runId":"r","cwd":"/w","provider":"p","model":"m"}',
        '{"allow":false,"reason":"r","text":"t","systemPrompt":""}',
    ),
    Example("setStatus", '{"key":"k","text":"t"}'),
    Example("host/unsubscribe", '{"subscriptionId":178}', "{}"),
)

SAMPLES = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"5","cwd":"/home/u/proj",'
    '"configDir":"/home/u/.config/piglet/extensions/demo"}}',
    '{"jsonrpc":"2.0","id":1,"method":"host/config.get","params":{"keys":["smallModel"]}}',
    '{"jsonrpc":"2.0","id":1,"result":{"values":{"smallModel":""}}}',
    '{"jsonrpc":"2.0","method":"register/tool","params":{"deferred":false,"description":"Adds","name":"add",'
    '"parameters":{"type":"object"},"promptHint":""}}',
    '{"jsonrpc":"2.0","method":"register/eventHandler","params":{"events":["EventTurnEnd"],"name":"watch",'
    '"priority":100}}',
    '{"jsonrpc":"2.0","id":1,"result":{"name":"demo","version":"0.1.0"}}',
    '{"jsonrpc":"2.0","id":6,"method":"interceptor/before","params":{"name":"gate","toolName":"add","args":{"a":1}}}',
    '{"jsonrpc":"2.0","id":6,"result":{"allow":true,"args":{"a":1}}}',
    '{"jsonrpc":"2.0","id":7,"result":{"allow":true}}',
    '{"jsonrpc":"2.0","id":8,"method":"tool/execute","params":{"callId":"call_1","name":"add","args":{"a":1}}}',
    '{"jsonrpc":"2.0","id":8,"result":{"content":[{"Type":"text","Text":"2","Data":"","Mime":""}],"isError":false}}',
    '{"jsonrpc":"2.0","id":9,"method":"interceptor/after","params":{"name":"gate","toolName":"add"}}',
    '{"jsonrpc":"2.0","id":9,"result":{"details":null}}',
    '{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"boom"}],"isError":true,'
    '"errorCode":"CUSTOM_X","errorHint":"do y"}}',
    '{"jsonrpc":"2.0","id":38,"method":"event/dispatch","params":{"type":"EventToolEnd","data":{"ToolCallID":"call_1",'
    '"ToolName":"add","Result":null,"IsError":false}}}',
    '{"jsonrpc":"2.0","id":38,"result":{"action":{"type":"setStatus","payload":{"key":"guardrail","text":"ok"}}}}',
    '{"jsonrpc":"2.0","id":38,"result":{"action":null}}',
    '{"jsonrpc":"2.0","id":4,"method":"messageHook/onMessage","params":{"message":"hi"}}',
    '{"jsonrpc":"2.0","id":2,"method":"inputTransformer/transform","params":{"input":"hi"}}',
    '{"jsonrpc":"2.0","id":2,"result":{"output":"hi","handled":false}}',
    '{"jsonrpc":"2.0","id":5,"method":"shortcut/handle","params":{"key":"ctrl+g"}}',
    '{"jsonrpc":"2.0","id":9,"method":"command/execute","params":{"name":"demo","args":"a b"}}',
    '{"jsonrpc":"2.0","id":9,"result":{}}',
    '{"jsonrpc":"2.0","id":7,"method":"provider/stream","params":{"requestId":6,"model":{"id":"m1","name":"M1",'
    '"api":"openai","provider":"p1","baseUrl":"http://127.0.0.1:9","reasoning":false,"contextWindow":8192,'
    '"maxTokens":512,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}},"system":"S","messages":'
    '[{"content":"hi","timestamp":"2026-05-01T10:00:00Z"}],"tools":[{"name":"add","description":"Adds",'
    '"parameters":{"type":"object"}}],"options":{"maxTokens":99}}}',
    '{"jsonrpc":"2.0","method":"provider/delta","params":{"requestId":6,"type":"text_delta","delta":"he"}}',
    '{"jsonrpc":"2.0","method":"provider/delta","params":{"requestId":6,"type":"toolcall_end","index":1,'
    '"tool":{"id":"c1","name":"add","arguments":"{\\"a\\":1}"}}}',
    '{"jsonrpc":"2.0","id":7,"result":{"message":{"content":[{"text":"hello"}],"model":"m1","provider":"p1",'
    '"usage":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":0,"cacheWriteTokens":0,"cost":0},'
    '"stopReason":"stop","timestamp":"2026-05-01T10:00:01Z"}}}',
    '{"jsonrpc":"2.0","id":57,"method":"compact/execute","params":{"messages":[{"type":"user","data":{"content":"q",'
    '"timestamp":"2026-05-01T10:00:00Z"}}]}}',
    '{"jsonrpc":"2.0","id":57,"result":{"messages":[{"type":"user","data":{"content":"summary"}}]}}',
    '{"jsonrpc":"2.0","id":51,"method":"host/subscribe","params":{"topic":"tp"}}',
    '{"jsonrpc":"2.0","method":"eventBus/event","params":{"topic":"tp","subscriptionId":178,"data":{"x":1}}}',
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":8}}',
    '{"jsonrpc":"2.0","method":"shutdown"}',
)
"""Lines of real conversations, from both sides."""
