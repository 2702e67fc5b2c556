"""Settings that stand in environment variables: which variable a field has, and what is said of a wrong value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import InstanceOf, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from proctor.domain.errors import BadInputError

PREFIX: Final = "PROCTOR_"
#: A path may hold bytes that are no UTF-8, of which pydantic's own text would make an error.
Text = Annotated[str, InstanceOf()]


def variable_of(field: str) -> str:
    """The environment variable of a field."""
    return f"{PREFIX}{field.upper()}"


class EnvironmentSettings(BaseSettings):
    """Settings whose fields have an environment variable `PROCTOR_<FIELD>` each.

    The environment is read by `from_environment` alone: settings that are made in code are what the code says.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        env_prefix=PREFIX,
        # JSON is read by whoever knows what it describes.
        enable_decoding=False,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What the code says, and nothing else."""
        return (init_settings,)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, **given: Any) -> Self:
        """Settings from `PROCTOR_*` variables, and the defaults for those that are not set, or are empty.

        Args:
            environ: the variables; only names in capitals count.
            given: fields that no variable of their own says.

        Raises:
            BadInputError: when a variable says what its field cannot be.
        """
        variables = EnvSettingsSource(cls)
        # It looks names up in lower case.
        variables.env_vars = {name.lower(): text for name, text in environ.items() if text and name.isupper()}
        try:
            return cls(**{**variables(), **given})
        except ValidationError as error:
            raise BadInputError(cls._refusal(error.errors(include_url=False)[0])) from None

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        return {variable_of(name): str(value or "") for name, value in self.model_dump().items()}

    @classmethod
    def _refusal(cls, fault: ErrorDetails) -> str:
        name, text = str(fault["loc"][0]), str(fault["input"])
        field = cls.model_fields[name]
        said = f"{variable_of(name)} is {text[:80]!r}, but must be"
        if isinstance(field.annotation, type) and issubclass(field.annotation, StrEnum):
            *most, last = field.annotation
            return f"{said} {', '.join(most)} or {last}; unset it for {field.default}"
        return f"{said} {field.description}"
