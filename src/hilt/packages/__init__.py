"""Extensions on disk: what their manifests say, where they lie, who trusts them, how they get there.

Nothing here starts one: that is `hilt.extensions`.
"""
