"""For the site: docstrings' roles, :func:`~package.module.name`, as plain code, `name`."""

import re

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>(?:~[\w.]*\.)?(~?[\w.]+)</code>")


def on_page_content(html: str, **_: object) -> str:
    return ROLE.sub(lambda role: f"<code>{role[1].lstrip('~')}</code>", html)
