/*
 * types.cpp - recognises pgvector's types, and their values.
 */
#include "pg/scan/plan.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

static ScanLayout layout_by_name(const char *name)
{
    if (strcmp(name, "vector") == 0)
        return SCAN_VECTOR;
    return strcmp(name, "halfvec") == 0 ? SCAN_HALFVEC : SCAN_UNKNOWN;
}

/* The owner of an extension may add types of any name to it. But only a superuser makes base types, and the input
 * functions of the extension's own types belong to it as well. */
static bool made_by_extension(Form_pg_type type, Oid extension)
{
    return type->typtype == TYPTYPE_BASE && type->typlen == -1 &&
           getExtensionOfObject(ProcedureRelationId, type->typinput) == extension;
}

/* By the name of type and extension: another type called vector may be anything. */
ScanLayout scan_vector_layout(Oid type)
{
    const Oid extension = getExtensionOfObject(TypeRelationId, type);
    const char *owner = OidIsValid(extension) ? get_extension_name(extension) : NULL;
    ScanLayout layout = SCAN_UNKNOWN;

    if (owner == NULL || strcmp(owner, "vector") != 0)
        return SCAN_UNKNOWN;

    const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

    if (!HeapTupleIsValid(tuple))
        return SCAN_UNKNOWN;

    const Form_pg_type form = (Form_pg_type)GETSTRUCT(tuple);

    if (made_by_extension(form, extension))
        layout = layout_by_name(NameStr(form->typname));
    ReleaseSysCache(tuple);
    return layout;
}

bool scan_vector_fits(ScanLayout layout, const char *bytes, Size size, ScanVectorHead *head)
{
    const Size element = layout == SCAN_VECTOR ? sizeof(float) : sizeof(uint16);

    if (size < sizeof *head)
        return false;
    memcpy(head, bytes, sizeof *head);
    return head->count >= 1 && size == sizeof *head + head->count * element;
}
