"""The migration planner: accepted schema and desired schema to steps.

M1  Every difference is classified. A change that no rule covers becomes one unsupported change on `schema`.
M2  The plan depends only on the two shapes and the hints: same input, same steps in the same order.
M3  A schema without any type is taken for a mistake, unless data may be lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.catalog.identity import AcceptedSchema, Resolution, resolve
from omnigraph.catalog.migration_codes import CHANGED_TYPE, REQUIRED_PROPERTY
from omnigraph.catalog.migration_steps import (
    AddIndex,
    AddProperty,
    AddType,
    ChangeDefault,
    ChangeExternal,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    RelaxProperty,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.catalog.shape import DeclarationKind, DesiredSchema, PropertyShape, Rule, TypeShape
from omnigraph.core.diagnostics import Diagnostic, Severity
from omnigraph.core.errors import SchemaError
from omnigraph.core.values import FLOATS, Scalar, ValueType
from omnigraph.language.schema_ast import DefaultValue, Embed, Note

WIDENINGS: dict[Scalar, frozenset[Scalar]] = {  # to types that hold every value of the old one exactly
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
}
_NOTHING_LEFT = (  # an empty file is rather one that was not written, or the end of a pipe
    "the schema has no type, which would drop every type of the graph: allow data loss "
    "(--allow-data-loss) if that is meant"
)
_FREE_NOTES = frozenset({"description", "instruction"})  # texts for readers: they may change at any time


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps, how desired declarations continue accepted ones, and notes about ignored hints."""

    steps: tuple[Step, ...]
    resolution: Resolution

    @property
    def is_supported(self) -> bool:
        """Whether the plan can be applied."""
        return not any(isinstance(step, UnsupportedChange) for step in self.steps)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the planner noticed besides the steps: ignored hints, and values that a step leaves alone."""
        return (*self.resolution.diagnostics, *filter(None, map(_left_alone, self.steps)))

    def require_supported(self) -> None:
        """Stop a plan that cannot be applied.

        Raises:
            SchemaError: with the first unsupported reason, preceded by its code.
        """
        for step in self.steps:
            if isinstance(step, UnsupportedChange):
                raise SchemaError(str(step), steps=self.steps)


def plan_migration(
    accepted: AcceptedSchema, desired: DesiredSchema, *, allow_data_loss: bool = False
) -> MigrationPlan:
    """Return the plan from one schema to another; if data loss is allowed, every drop is hard.

    Raises:
        CatalogError: a rename hint cannot be followed.
    """
    resolution = resolve(accepted, desired)
    if not allow_data_loss and not desired.shape.types and accepted.shape.types:
        return MigrationPlan((UnsupportedChange("schema", _NOTHING_LEFT),), resolution)
    planner = _Planner(accepted, desired, resolution, DropMode.HARD if allow_data_loss else DropMode.SOFT)
    return MigrationPlan(tuple(planner.steps()), resolution)


def _left_alone(step: Step) -> Diagnostic | None:
    """Return which values stay although the new schema would refuse them."""
    if not isinstance(step, ChangeExternal) or not step.removed_bases:
        return None
    if step.type_kind is DeclarationKind.INTERFACE:  # it has no values
        return None
    gone, name = ", ".join(step.removed_bases), f"{step.type_name}.{step.property_name}"
    message = f"references of '{name}' below {gone} stay where rows have them; later ones are refused"
    return Diagnostic(message, severity=Severity.WARNING)


class _Planner:
    def __init__(
        self, accepted: AcceptedSchema, desired: DesiredSchema, resolution: Resolution, mode: DropMode
    ) -> None:
        self.accepted = {(shape.kind, shape.name): shape for shape in accepted.shape.types}
        self.desired = desired.shape
        self.resolution = resolution
        self.mode = mode
        self.node_names = {
            old: name
            for (kind, name), old in resolution.types.items()
            if old and kind is DeclarationKind.NODE
        }

    def steps(self) -> Iterator[Step]:
        for kind in DeclarationKind:
            continued: set[str] = set()
            for shape in self.desired.of_kind(kind):
                former = self.resolution.types[kind, shape.name]
                if former is None:
                    yield AddType(kind, shape.name)
                    continue
                continued.add(former)
                old = self.under_new_endpoints(self.accepted[kind, former])
                steps = tuple(self.changed_type(old, shape))
                if not steps and old != shape:
                    steps = (UnsupportedChange("schema", f"unclassified change of {kind} '{shape.name}'"),)
                yield from steps
            for other, name in sorted(self.accepted):
                if other is kind and name not in continued:
                    yield self.dropped_type(kind, name)

    def dropped_type(self, kind: DeclarationKind, name: str) -> Step:
        if kind is DeclarationKind.INTERFACE:
            return UnsupportedChange(f"interface:{name}", f"removing interface '{name}' is not supported")
        return DropType(kind, name, self.mode)

    def under_new_endpoints(self, shape: TypeShape) -> TypeShape:
        """Return an edge with its node types under their new names: a renamed type is the same type."""
        source, target = (self.node_names.get(end or "", end) for end in (shape.source, shape.target))
        return replace(shape, source=source, target=target)

    def changed_type(self, old: TypeShape, new: TypeShape) -> Iterator[Step]:
        entity = f"{new.kind}:{new.name}"
        if old.name != new.name:
            if new.kind is DeclarationKind.INTERFACE:
                yield UnsupportedChange(entity, f"renaming interface '{old.name}' is not supported")
            else:
                yield RenameType(new.kind, old.name, new.name)
        yield from self.changed_head(old, new, entity)
        if old.notes != new.notes:
            yield _metadata(UpdateTypeMetadata(new.kind, new.name, new.notes), old.notes, new.notes, entity)
        yield from self.changed_properties(old, new)

    def changed_head(self, old: TypeShape, new: TypeShape, entity: str) -> Iterator[Step]:
        if old.implements != new.implements:
            yield UnsupportedChange(entity, f"changing the interfaces of '{new.name}' is not supported")
        if (old.source, old.target) != (new.source, new.target):
            yield UnsupportedChange(entity, f"changing the endpoints of edge '{new.name}' is not supported")
        if old.cardinality != new.cardinality:
            yield UnsupportedChange(entity, f"changing the cardinality of edge '{new.name}' is not supported")

    def changed_properties(self, old: TypeShape, new: TypeShape) -> Iterator[Step]:
        before = {item.name: item for item in old.properties}
        continues = {
            name: self.resolution.properties[new.kind, new.name, name] for name in new.property_names
        }
        renames = {former: name for name, former in continues.items() if former is not None}
        rules = {rule.renamed(renames) for rule in old.rules}
        for item in new.properties:
            former = continues[item.name]
            if former is None:
                yield _added_property(new, item)
            else:
                yield from _changed_property(new, before[former], item, renames, rules)
        for name in sorted(before.keys() - renames.keys()):
            yield DropProperty(new.kind, new.name, name, self.mode)
        yield from _changed_rules(new, rules)


def _added_property(owner: TypeShape, item: PropertyShape) -> Step:
    if item.type.nullable or item.default is not None:
        bases = item.external or None
        return AddProperty(owner.kind, owner.name, item.name, item.type, _default(item), bases)
    reason = (
        f"adding required property '{owner.name}.{item.name}' is not supported: "
        "make it nullable, or give it a @default"
    )
    return UnsupportedChange(_entity(owner, item), reason, REQUIRED_PROPERTY.code)


def _changed_property(
    owner: TypeShape, old: PropertyShape, new: PropertyShape, renames: dict[str, str], rules: set[Rule]
) -> Iterator[Step]:
    entity, name = _entity(owner, new), f"{owner.name}.{new.name}"
    if old.name != new.name:
        yield RenameProperty(owner.kind, owner.name, old.name, new.name)
    if old.type != new.type:
        yield from _changed_type(owner, old.type, new)
    if old.default != new.default:
        yield ChangeDefault(owner.kind, owner.name, new.name, _default(old), _default(new))
    if old.external != new.external:
        yield _changed_external(owner, old, new)
    if _embed_under(old.embed, renames) != new.embed:
        yield UnsupportedChange(entity, f"changing @embed of '{name}' is not supported")
    yield from _changed_spelling(owner, old, new, rules)
    if (old.is_declared, old.satisfies) != (new.is_declared, new.satisfies):
        reason = f"changing which interfaces '{name}' comes from is not supported"
        yield UnsupportedChange(entity, reason)
    if old.notes != new.notes:
        step = UpdatePropertyMetadata(owner.kind, owner.name, new.name, new.notes)
        yield _metadata(step, old.notes, new.notes, entity)


def _changed_external(owner: TypeShape, old: PropertyShape, new: PropertyShape) -> Step:
    """Return how the bases of references change; a column never turns from bytes into references or back."""
    before, after = set(old.external), set(new.external)
    if before and after:
        added, removed = tuple(sorted(after - before)), tuple(sorted(before - after))
        return ChangeExternal(owner.kind, owner.name, new.name, added, removed)
    move, held, wanted = (
        ("taking @external from", "references", "bytes")
        if before
        else ("putting @external on", "bytes", "references")
    )
    reason = (
        f"{move} '{owner.name}.{new.name}' is not supported: its values are {held};"
        f" add another property for {wanted}"
    )
    return UnsupportedChange(_entity(owner, new), reason)


def _changed_type(owner: TypeShape, old: ValueType, item: PropertyShape) -> Iterator[Step]:
    """Yield how values of the old type become values of the new one: the type first, then nullability."""
    new = replace(item.type, nullable=old.nullable)
    before, after = set(old.enum_values or ()), set(new.enum_values or ())
    unsupported = (
        f"changing the type of '{owner.name}.{item.name}' from {old} to {item.type} is not supported"
    )
    if old.nullable and not item.type.nullable:
        yield UnsupportedChange(_entity(owner, item), unsupported, CHANGED_TYPE.code)
        return
    if before and before < after:
        yield ExtendEnum(owner.kind, owner.name, item.name, tuple(sorted(after - before)))
    elif _is_wider(old, new):
        if _is_key(owner, item) and old.scalar in FLOATS:
            reason = f"{unsupported}: it is part of the key, and ids of existing rows would change"
            yield UnsupportedChange(_entity(owner, item), reason, CHANGED_TYPE.code)
            return
        yield WidenProperty(owner.kind, owner.name, item.name, old, new)
    elif old != new:
        yield UnsupportedChange(_entity(owner, item), unsupported, CHANGED_TYPE.code)
        return
    if item.type.nullable and not old.nullable:
        yield RelaxProperty(owner.kind, owner.name, item.name)


def _is_wider(old: ValueType, new: ValueType) -> bool:
    return new.scalar in WIDENINGS.get(old.scalar, frozenset()) and replace(new, scalar=old.scalar) == old


def _is_key(owner: TypeShape, item: PropertyShape) -> bool:
    """Return whether a property is a member of the key.

    An id holds the text of its key. Integers have the same text in every wider type, floats do not: 0.1 as
    F32 is 0.10000000149011612 as F64.
    """
    return any(rule.kind == "key" and item.name in rule.columns for rule in owner.rules)


def _default(item: PropertyShape) -> DefaultValue | None:
    return None if item.default is None else item.default.value


def _changed_spelling(
    owner: TypeShape, old: PropertyShape, new: PropertyShape, rules: set[Rule]
) -> Iterator[Step]:
    """Yield the steps of a constraint that moved between the property and the body.

    One that was added or removed altogether is reported as a changed rule.
    """
    for kind in sorted(set(old.written) ^ set(new.written)):
        rule = Rule(kind, (new.name,))
        if rule not in rules or rule not in owner.rules:
            continue
        if kind in old.written or kind != "index":
            reason = f"moving @{kind} of '{owner.name}.{new.name}' between property and body is not supported"
            yield UnsupportedChange(_entity(owner, new), reason)
        else:
            yield AddIndex(owner.kind, owner.name, (new.name,))


def _changed_rules(owner: TypeShape, before: set[Rule]) -> Iterator[Step]:
    entity = f"{owner.kind}:{owner.name}"
    for rule in owner.rules:
        if rule in before:
            continue
        if rule.kind == "index":
            yield AddIndex(owner.kind, owner.name, rule.columns)
        else:
            yield UnsupportedChange(entity, f"adding {rule} to existing '{owner.name}' is not supported")
    for rule in sorted(before - set(owner.rules), key=repr):
        yield UnsupportedChange(entity, f"removing {rule} from '{owner.name}' is not supported")


def _metadata(step: Step, old: tuple[Note, ...], new: tuple[Note, ...], entity: str) -> Step:
    """Return the step if only texts for readers changed; any other annotation may carry meaning."""
    changed = sorted({note.name for note in set(old) ^ set(new)} - _FREE_NOTES)
    if changed:
        return UnsupportedChange(entity, f"changing annotation @{changed[0]} of '{entity}' is not supported")
    return step


def _embed_under(embed: Embed | None, renames: dict[str, str]) -> Embed | None:
    return embed and Embed(renames.get(embed.source, embed.source), embed.model)


def _entity(owner: TypeShape, item: PropertyShape) -> str:
    return f"{owner.kind}:{owner.name}.{item.name}"
