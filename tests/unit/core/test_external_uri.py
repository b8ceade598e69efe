"""Which bases a schema may name, and which URIs lie below them: a table of what must not get through."""

import pytest

from omnigraph.core.external_uri import CREDENTIAL_WORDS, base_fault, form_fault, reference_fault
from omnigraph.core.limits import EXTERNAL_URI_BYTES_MAX

BASES = (
    "az://scans/",
    "file:///srv/atlas/",
    "gs://maps/a b/".replace(" ", "%20"),
    "http://127.0.0.1:8080/",
    "https://[2001:db8::1]:8443/x/",
    "https://cdn.example/",
    "s3://assets/atlas/",
)
HOSTILE: dict[str, str] = {
    # nothing, too much, no URI at all
    "": "empty",
    "cover.png": "not absolute",
    "/etc/passwd": "not absolute",
    "//cdn.example/x": "not absolute",
    "s3:assets/atlas/x": "not absolute",
    "s3:/assets/atlas/x": "not absolute",
    "https:cdn.example/x": "not absolute",
    "s3://assets/atlas/" + "x" * EXTERNAL_URI_BYTES_MAX: "at most 65536",
    # the base itself, and what only begins like one
    "s3://assets/atlas/": "not below",
    "s3://assets/atlas": "not below",
    "s3://assets/atlasevil/x": "not below",
    "s3://assets/atlas.evil/x": "not below",
    "s3://assets/": "not below",
    "s3://assets": "no path",
    "s3://assets2/atlas/x": "not below",
    "https://cdn.example?x=1": "no path",
    "https://cdn.example/?width=1": "not below",
    "https://cdn.example.evil/x": "not below",
    "https://evil/cdn.example/x": "not below",
    "https://evil/?https://cdn.example/x": "not below",
    # another scheme
    "http://cdn.example/x": "not below",
    "javascript://cdn.example/%0aalert(1)": "scheme is none of",
    "data://text/plain": "scheme is none of",
    "ftp://cdn.example/x": "scheme is none of",
    "gopher://cdn.example/x": "scheme is none of",
    "s3a://assets/atlas/x": "scheme is none of",
    "file+https://cdn.example/x": "scheme is none of",
    # case
    "S3://assets/atlas/x": "small letters",
    "HTTPS://cdn.example/x": "small letters",
    "https://CDN.example/x": "small letters",
    "s3://Assets/atlas/x": "small letters",
    "s3://assets/ATLAS/x": "not below",
    # a folder above
    "s3://assets/atlas/../x": "another folder",
    "s3://assets/atlas/..": "another folder",
    "s3://assets/atlas/.": "another folder",
    "s3://assets/atlas/./x": "another folder",
    "s3://assets/atlas/x/../../y": "another folder",
    "s3://assets/atlas/%2e%2e/x": "another folder",
    "s3://assets/atlas/%2E%2E/x": "another folder",
    "s3://assets/atlas/.%2e/x": "another folder",
    "s3://assets/atlas/..;/x": "another folder",
    "s3://assets/atlas/..;a=b/x": "another folder",
    "s3://assets/atlas/%20..%20/x": "another folder",
    "s3://assets/atlas/.../x": "another folder",
    "s3://assets/atlas/%E2%80%A6/x": "another folder",  # an ellipsis is three dots
    "s3://assets/atlas/%E2%80%A5/x": "another folder",  # a two dot leader
    "s3://assets/atlas/%EF%BC%8E%EF%BC%8E/x": "another folder",  # full-width dots
    "s3://assets/atlas/\uff0e\uff0e/x": "U+FF0E",
    "s3://assets/atlas/\u2025/x": "U+2025",
    "s3://assets/atlas/%252e%252e/x": "encoded twice",
    "s3://assets/atlas/%25%32%65%25%32%65/x": "encoded twice",
    "s3://assets/atlas/%c0%ae%c0%ae/x": "not UTF-8",  # an overlong dot
    "s3://assets/atlas/a%2f..%2fb": "slash behind",
    "s3://assets/atlas/a%2Fb": "slash behind",
    "s3://assets/atlas/..%5cx": "slash behind",
    "s3://assets/atlas/%EF%BC%8F..": "slash behind",  # a full-width slash
    "s3://assets/atlas/%EF%BC%BCx": "slash behind",  # a full-width backslash
    "s3://assets/atlas/..\\x": "U+005C",
    "https://cdn.example\\@evil/x": "U+005C",
    "https:\\\\cdn.example\\x": "U+005C",
    "s3://assets/atlas//x": "empty name",
    "https://cdn.example//evil/x": "empty name",
    "file:////evil/share": "empty name",
    "file://evil/srv/atlas/x": "no host",
    "file://localhost/srv/atlas/x": "no host",
    # control characters and white space
    "s3://assets/atlas/\tx": "U+0009",
    "s3://assets/atlas/x\n": "U+000A",
    "\ns3://assets/atlas/x": "U+000A",
    " s3://assets/atlas/x": "U+0020",
    "s3://assets/atlas/a b": "U+0020",
    "s3://assets/atlas/x\r\nSet-Cookie: a=b": "U+000D",
    "s3://assets/atlas/x\0.png": "U+0000",
    "s3://assets/atlas/x\x7f": "U+007F",
    "s3://assets/atlas/\u202egnp.exe": "U+202E",
    "s3://assets/atlas/%00": "control character",
    "s3://assets/atlas/x%0d%0aSet-Cookie:a=b": "control character",
    "s3://assets/atlas/%E2%80%AEgnp.exe": "control character",
    "s3://assets/atlas/.%E2%80%8B./x": "control character",
    "https://cdn.example/x?a=%0d%0ab": "control character",
    # characters of no URI
    "s3://assets/atlas/caf\u00e9": "U+00E9",
    "s3://assets/atlas/\ud800": "U+D800",
    "https://cdn\u3002example/x": "U+3002",
    "https://\u0441dn.example/x": "U+0441",
    "s3://assets/atlas/<script>": "U+003C",
    's3://assets/atlas/"': "U+0022",
    "s3://assets/atlas/{x}": "U+007B",
    "s3://assets/atlas/a|b": "U+007C",
    "s3://assets/atlas/%": "two hexadecimal",
    "s3://assets/atlas/%zz": "two hexadecimal",
    "s3://assets/atlas/%2": "two hexadecimal",
    "s3://assets/atlas/[x]": "bracket",
    # who is asked
    "https://cdn.example@evil/x": "user info",
    "https://me:secret@cdn.example/x": "user info",
    "https://@cdn.example/x": "user info",
    "s3://key:secret@assets/atlas/x": "user info",
    "https://cdn.example%40evil/x": "no name of a host",
    "https://cdn.example%2eevil/x": "no name of a host",
    "https://cdn.example:443/x": "not below",
    "https://cdn.example:/x": "no name of a host",
    "https://cdn.example:99999/x": "no port",
    "https://cdn.example:0443/x": "no name of a host",
    "https://cdn.example./x": "no name of a host",
    "https:///cdn.example/x": "no host",
    "s3://assets:9000/atlas/x": "name of a bucket",
    "s3://[::1]/atlas/x": "name of a bucket",
    "http://127.1:8080/x": "not below",
    "http://2130706433:8080/x": "not below",
    "http://0x7f.0.0.1:8080/x": "not below",
    "http://[::ffff:127.0.0.1]:8080/x": "is written",
    "https://[2001:db8:0::1]:8443/x/y": "is written [2001:db8::1]",
    "https://[2001:DB8::1]:8443/x/y": "small letters",
    "https://[fe80::1%25eth0]/x": "no name of a host",
    "https://[::1/x": "no name of a host",
    "https://[:::]/x": "no address",
    # fragments, queries, credentials
    "https://cdn.example/x#y": "fragment",
    "https://cdn.example/#@evil/": "fragment",
    "s3://assets/atlas/x?versionId=3": "has no query",
    "file:///srv/atlas/x?y": "has no query",
    "https://cdn.example/x?X-Amz-Signature=0f": "'sig'",
    "https://cdn.example/x?X-Amz-Credential=AK": "'cred'",
    "https://cdn.example/x?x-amz-security-token=t": "'token'",
    "https://cdn.example/x?sv=1&sig=abc%3D": "'sig'",
    "https://cdn.example/x?Signature=1&Key-Pair-Id=2": "'sig'",
    "https://cdn.example/x?w=1&GoogleAccessId=a&Expires=1;token=2": "'token'",
    "https://cdn.example/x?%73ig=1": "'sig'",
    "https://cdn.example/x?%2573ig=1": "encoded twice",
    "https://cdn.example/x?api_key=1": "'key'",
    "https://cdn.example/x?pass.word=1": "'pass'",
    "https://cdn.example/x?s-i-g=1": "'sig'",
}
HONEST = (
    "s3://assets/atlas/x",
    "s3://assets/atlas/a/b/c.tar.gz",
    "s3://assets/atlas/.hidden",
    "s3://assets/atlas/..hidden",
    "s3://assets/atlas/v1.0..v2.0",
    "s3://assets/atlas/caf%C3%A9%20au%20lait.png",
    "s3://assets/atlas/a%23b%3Fc%25d",
    "s3://assets/atlas/a+b=c,d;v=1:2!$&'()*@e~_-",
    "s3://assets/atlas/folder/",
    "gs://maps/a%20b/x",
    "az://scans/2026/x.tif",
    "file:///srv/atlas/x",
    "http://127.0.0.1:8080/x",
    "https://[2001:db8::1]:8443/x/y",
    "https://cdn.example/x?width=200&fit=crop",
    "https://cdn.example/x?",
    "s3://assets/atlas/" + "x" * (EXTERNAL_URI_BYTES_MAX - len("s3://assets/atlas/")),
)


@pytest.mark.case("surfaces", 730)
@pytest.mark.parametrize("uri", HOSTILE, ids=lambda uri: ascii(uri)[:60])
def test_what_could_lead_elsewhere_or_hold_a_credential_is_refused(uri: str) -> None:
    fault = reference_fault(uri, BASES)

    assert fault is not None
    assert HOSTILE[uri] in fault
    assert fault.isprintable()
    assert len(fault) < 400


@pytest.mark.case("surfaces", 730)
@pytest.mark.parametrize("uri", HONEST, ids=lambda uri: ascii(uri)[:60])
def test_what_lies_below_a_base_is_a_reference(uri: str) -> None:
    assert reference_fault(uri, BASES) is None
    assert form_fault(uri) is None
    assert "not below" in str(reference_fault(uri, ("s3://elsewhere/",)))


@pytest.mark.case("surfaces", 730)
@pytest.mark.parametrize("word", CREDENTIAL_WORDS)
def test_a_parameter_that_is_named_like_a_credential_is_one(word: str) -> None:
    for name in (word, word.upper(), f"x-{word}-y", f"my{word}"):
        assert "may hold a credential" in str(reference_fault(f"https://cdn.example/x?{name}=1", BASES))


@pytest.mark.case("surfaces", 731)
@pytest.mark.parametrize("base", BASES)
def test_a_base_is_a_folder_of_a_place(base: str) -> None:
    assert base_fault(base) is None


@pytest.mark.case("surfaces", 731)
@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("s3://assets/atlas", "ends with '/'"),
        ("s3://assets", "no path"),
        ("assets/", "not absolute"),
        ("ftp://host/", "scheme is none of"),
        ("S3://assets/", "small letters"),
        ("https://me:secret@cdn.example/", "user info"),
        ("https://cdn.example/?a=b/", "has no query"),
        ("https://cdn.example/x?token=1", "credential"),
        ("https://cdn.example/#/", "fragment"),
        ("s3://assets/../", "another folder"),
        ("s3://assets/%2e%2e/", "another folder"),
        ("", "empty"),
    ],
)
def test_what_is_no_folder_of_a_place_is_no_base(base: str, words: str) -> None:
    assert words in str(base_fault(base))


@pytest.mark.case("surfaces", 731)
def test_a_star_in_a_base_is_a_character_of_a_name() -> None:
    assert base_fault("s3://assets/*/") is None
    assert "not below" in str(reference_fault("s3://assets/atlas/x", ["s3://assets/*/"]))
