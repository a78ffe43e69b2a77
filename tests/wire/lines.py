"""Lines as they stand on the wire, each with the frame it is. All frames of both directions are here."""

from msgspec import Raw

from hilt.wire import frames_types as t

SCHEMA = b'{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}'

EXTENSION_LINES: dict[bytes, t.ExtensionFrame] = {
    b'{"type":"hello","name":"demo","version":"0.1","capabilities":["commands","tools","events"]}': t.Hello(
        "demo", "0.1", ("commands", "tools", "events")
    ),
    b'{"type":"register_command","name":"demo","description":"run demo"}': t.RegisterCommand("demo", "run demo"),
    b'{"type":"register_tool","name":"add","description":"add two ints","schema":' + SCHEMA + b"}": t.RegisterTool(
        "add", "add two ints", Raw(SCHEMA)
    ),
    b'{"type":"register_tool","name":"pick","schema":{},"output_schema":{"type":"string"},"namespace":"ui",'
    b'"namespace_description":"d","namespace_instructions":"i","exposure":"deferred","deferred":true,'
    b'"interactive":true}': t.RegisterTool(
        "pick", "", Raw(b"{}"), Raw(b'{"type":"string"}'), "ui", "d", "i", "deferred", deferred=True, interactive=True
    ),
    b'{"type":"subscribe","events":["turn_end"],"intercept":["tool_call"]}': t.Subscribe(("turn_end",), ("tool_call",)),
    b'{"type":"ready"}': t.Ready(),
    b'{"type":"command_response","id":"101500000001","action":"display","display":"line1\\nline2"}': t.CommandResponse(
        "101500000001", "display", display="line1\nline2"
    ),
    b'{"type":"command_response","id":"101501000001","action":"noop","error":"bad args"}': t.CommandResponse(
        "101501000001", "noop", error="bad args"
    ),
    b'{"type":"command_response","id":"3","action":"open_panel","open_panel":{"id":"p","title":"T","lines":["one"],'
    b'"footer":"esc closes"}}': t.CommandResponse(
        "3", "open_panel", open_panel=t.PanelSpec("p", "T", ("one",), "esc closes")
    ),
    b'{"type":"command_response","id":"4","action":"tool_prompt","prompt":"p","tool_name":"add",'
    b'"tool_args":{"a":1}}': t.CommandResponse("4", "tool_prompt", "p", tool_name="add", tool_args=Raw(b'{"a":1}')),
    '{"type":"tool_result","id":"…2","content":[{"type":"text","text":"41"}]}'.encode(): t.ToolResult(
        "…2", (t.Block("text", "41"),)
    ),
    b'{"type":"tool_result","id":"5","content":[{"type":"image","mime_type":"image/png","data":"AAAA"}],"is_error":true,'
    b'"activate_tools":["x"],"structured_content":[1,{"a":null}]}': t.ToolResult(
        "5",
        (t.Block("image", mime_type="image/png", data="AAAA"),),
        is_error=True,
        activate_tools=("x",),
        structured_content=Raw(b'[1,{"a":null}]'),
    ),
    '{"type":"event_intercept_response","id":"…1","modified_args":{"a":1,"b":40}}'.encode(): t.EventInterceptResponse(
        "…1", modified_args=Raw(b'{"a":1,"b":40}')
    ),
    b'{"type":"event_intercept_response","id":"6","block":true,"reason":"no"}': t.EventInterceptResponse(
        "6", block=True, reason="no"
    ),
    b'{"type":"event_intercept_response","id":"7","replace_text":"x","system_prompt":""}': t.EventInterceptResponse(
        "7", replace_text="x", system_prompt=""
    ),
    b'{"type":"notify","level":"warn","message":"careful"}': t.Notify("warn", "careful"),
    b'{"type":"clear_notes"}': t.ClearNotes(),
    b'{"type":"submit","text":"hi"}': t.Submit("hi"),
    b'{"type":"submit_slash","text":"/help"}': t.SubmitSlash("/help"),
    b'{"type":"open_panel","panel":{"id":"p","lines":["a","b"]}}': t.OpenPanel(t.PanelSpec("p", lines=("a", "b"))),
    b'{"type":"panel_render","panel_id":"p","lines":["two"],"footer":"f"}': t.PanelRender("p", "", ("two",), "f"),
    b'{"type":"panel_close","panel_id":"p"}': t.PanelClose("p"),
    b'{"type":"shutdown_ack"}': t.ShutdownAck(),
    b'{"type":"call_tool","id":"8","name":"read","args":{"path":"x"},"parent_id":"5"}': t.CallTool(
        "8", "read", Raw(b'{"path":"x"}'), "5"
    ),
    b'{"type":"call_tool_cancel","id":"8"}': t.CallToolCancel("8"),
    b'{"type":"host_request","id":"9","method":"host/listTools","params":{"filter":"all"}}': t.HostRequest(
        "9", "host/listTools", Raw(b'{"filter":"all"}')
    ),
    b'{"type":"register","kind":"prompt_section","title":"T","content":"C","order":5,"tokenHint":9}': t.Register(
        "prompt_section", title="T", content="C", order=5, token_hint=9
    ),
    b'{"type":"register","kind":"shortcut","key":"ctrl+g","description":"d"}': t.Register(
        "shortcut", key="ctrl+g", description="d"
    ),
    b'{"type":"register","kind":"message_hook","name":"h","priority":-3}': t.Register(
        "message_hook", name="h", priority=-3
    ),
    b'{"type":"register","kind":"input_transformer","name":"x"}': t.Register("input_transformer", name="x"),
    b'{"type":"register","kind":"compactor","name":"c","threshold":1000}': t.Register(
        "compactor", name="c", threshold=1000
    ),
    b'{"type":"register","kind":"provider","api":"openai"}': t.Register("provider", api="openai"),
    b'{"type":"register","kind":"provider","api":"own","models":[{"id":"m1"}]}': t.Register(
        "provider", api="own", models=Raw(b'[{"id":"m1"}]')
    ),
    b'{"type":"register","kind":"interceptor","name":"g","priority":7,"events":["tool_call"]}': t.Register(
        "interceptor", name="g", priority=7, events=("tool_call",)
    ),
    b'{"type":"register","kind":"event_handler","name":"w","events":[]}': t.Register(
        "event_handler", name="w", events=()
    ),
    b'{"type":"host_notify","method":"setWidget","params":{"key":"w"}}': t.HostNotify("setWidget", Raw(b'{"key":"w"}')),
    b'{"type":"ext_response","id":"6","result":{"allow":true}}': t.ExtResponse("6", Raw(b'{"allow":true}')),
    b'{"type":"ext_response","id":"6","error":{"code":-32603,"message":"no"}}': t.ExtResponse(
        "6", error=t.HostFault(-32603, "no")
    ),
    b'{"type":"tool_progress","id":"5","text":"half"}': t.ToolProgress("5", "half"),
}

HOST_LINES: dict[bytes, t.HostFrame] = {
    b'{"type":"hello_ack","protocol_version":1,"zot_version":"0.0.0","provider":"anthropic","model":"m","cwd":"/w",'
    b'"extension_dir":"/x/demo","data_dir":"/x/demo"}': t.HelloAck(
        protocol_version=1,
        zot_version="0.0.0",
        provider="anthropic",
        model="m",
        cwd="/w",
        extension_dir="/x/demo",
        data_dir="/x/demo",
    ),
    b'{"type":"hello_ack","protocol_version":1,"capabilities":["call_tool"],"zot_version":"0.1.62","provider":"",'
    b'"model":"","cwd":"","host":"hilt","host_version":"1.0"}': t.HelloAck(
        protocol_version=1,
        capabilities=("call_tool",),
        zot_version="0.1.62",
        provider="",
        model="",
        cwd="",
        host="hilt",
        host_version="1.0",
    ),
    b'{"type":"command_invoked","id":"101500000001","name":"demo"}': t.CommandInvoked("101500000001", "demo"),
    b'{"type":"shortcut_invoked","id":"7","key":"ctrl+g"}': t.ShortcutInvoked("7", "ctrl+g"),
    b'{"type":"command_invoked","id":"101501000001","name":"demo","args":"a  b"}': t.CommandInvoked(
        "101501000001", "demo", "a  b"
    ),
    '{"type":"tool_call","id":"…2","name":"add","args":{"a":1,"b":40}}'.encode(): t.ToolCall(
        "…2", "add", Raw(b'{"a":1,"b":40}')
    ),
    b'{"type":"tool_call","id":"1","name":"now","args":{}}': t.ToolCall("1", "now", Raw(b"{}")),
    b'{"type":"tool_cancel","id":"1"}': t.ToolCancel("1"),
    b'{"type":"event","event":"tool_call","tool_id":"t1","tool_name":"add","tool_args":{"a":1,"b":2}}': t.Event(
        "tool_call", tool_id="t1", tool_name="add", tool_args=Raw(b'{"a":1,"b":2}')
    ),
    b'{"type":"event","event":"turn_end","stop":"tool_use"}': t.Event("turn_end", stop="tool_use"),
    b'{"type":"event","event":"turn_start","step":1,"session_id":"s","cwd":"/w","sequence":12}': t.Event(
        "turn_start", step=1, session_id="s", cwd="/w", sequence=12
    ),
    '{"type":"event_intercept","id":"…1","event":"tool_call","tool_id":"t1","tool_name":"add",'
    '"tool_args":{"a":1,"b":2}}'.encode(): t.EventIntercept("…1", "tool_call", "t1", "add", Raw(b'{"a":1,"b":2}')),
    b'{"type":"event_intercept","id":"2","event":"turn_start","step":3}': t.EventIntercept("2", "turn_start", step=3),
    b'{"type":"event_intercept","id":"3","event":"assistant_message","text":"hi"}': t.EventIntercept(
        "3", "assistant_message", text="hi"
    ),
    b'{"type":"event_intercept","id":"4","event":"before_agent_start","system_prompt":"","origin_extension":"o",'
    b'"session_id":"s","agent_run_id":"r","cwd":"/w","provider":"p","model":"m"}': t.EventIntercept(
        "4",
        "before_agent_start",
        system_prompt="",
        origin_extension="o",
        session_id="s",
        agent_run_id="r",
        cwd="/w",
        provider="p",
        model="m",
    ),
    b'{"type":"panel_key","panel_id":"p","key":"down"}': t.PanelKey("p", "down"),
    b'{"type":"panel_key","panel_id":"p","key":"rune","text":"x"}': t.PanelKey("p", "rune", "x"),
    b'{"type":"panel_resize","panel_id":"p","width":80,"height":24}': t.PanelResize("p", 80, 24),
    b'{"type":"panel_close","panel_id":"p"}': t.PanelClose("p"),
    b'{"type":"tool_result","id":"8","name":"read","content":[{"type":"text","text":"x"}],"is_error":true,'
    b'"truncated":true}': t.CallResult("8", "read", (t.Block("text", "x"),), is_error=True, truncated=True),
    b'{"type":"tool_result","id":"8","name":"read","content":[]}': t.CallResult("8", "read", ()),
    b'{"type":"host_response","id":"9","result":{"tools":[]}}': t.HostResponse("9", Raw(b'{"tools":[]}')),
    b'{"type":"host_response","id":"9","error":{"code":-32601,"message":"unknown"}}': t.HostResponse(
        "9", error=t.HostFault(-32601, "unknown")
    ),
    b'{"type":"ext_request","id":"6","method":"messageHook/onMessage","params":{"message":"hi"}}': t.ExtRequest(
        "6", "messageHook/onMessage", Raw(b'{"message":"hi"}')
    ),
    b'{"type":"ext_notify","method":"eventBus/event","params":{"topic":"t"}}': t.ExtNotify(
        "eventBus/event", Raw(b'{"topic":"t"}')
    ),
    b'{"type":"shutdown"}': t.Shutdown(),
}
