"""Pages, and the right of the API that each of them needs."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from starlette.responses import Response

from carteiro.api.rights import RIGHTS, Right
from carteiro.model import Role, value

if TYPE_CHECKING:
    from carteiro.console.visit import Visit

Handler: TypeAlias = Callable[["Visit"], Awaitable[Response]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[Response]])

ANYONE: Final = "anyone"  # also people who are not signed in
SIGNED_IN: Final = "signed in"  # any role, of any tenant
_OF_ALL = Right(Role.VIEWER, scoped=True)
_MARK = "console_pages"


@value
class Show:
    """A page at a path below ``/console``, as a decorator of the method that renders it. It changes nothing.

    ``needs``: the endpoint of the API, in `RIGHTS`, that shows the same.
    """

    path: str
    needs: str
    method: str = "GET"
    confirms: str = ""

    def __call__(self, method: Method) -> Method:
        """Mark a method of `Pages`."""
        vars(method).setdefault(_MARK, []).insert(0, self)
        return method

    @property
    def right(self) -> Right | None:
        """The right that it needs; None: none. KeyError if the table has no such row."""
        if self.needs == ANYONE:
            return None
        return _OF_ALL if self.needs == SIGNED_IN else RIGHTS[self.needs]


@value
class Change(Show):
    """A form that changes something; ``needs``: the endpoint of the API that makes the same change.

    ``confirms``: the word with the question that has to be answered first.
    """

    method: str = "POST"


class Pages:
    """The methods of a class that are marked with `Show` or `Change`. A fixed path goes above one with an id."""

    def pages(self) -> Iterator[tuple[Show, Handler]]:
        """Each page, and the method that renders it."""
        for name, method in vars(type(self)).items():
            for each in getattr(method, _MARK, ()):
                yield each, getattr(self, name)
