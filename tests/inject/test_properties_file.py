"""Properties files, as Java and Spark read them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.inject.installation import (
    PropertiesFileError,
    default_properties_file,
    parse_properties,
    read_properties_file,
    write_properties_file,
)

CASES = {
    "spark.a=1": {"spark.a": "1"},
    "spark.a   1  ": {"spark.a": "1"},
    "spark.a : 1": {"spark.a": "1"},
    "spark.a\t=\t1": {"spark.a": "1"},
    "  spark.a=b=c:d": {"spark.a": "b=c:d"},
    "spark.a": {"spark.a": ""},
    "spark.a==1": {"spark.a": "=1"},
    "# spark.a=1\n! spark.b=2\nspark.c=3 # no comment": {"spark.c": "3 # no comment"},
    "# no end \\\nspark.a=1\n  ! no end \\\nspark.b=2": {"spark.a": "1", "spark.b": "2"},
    "other.a=1\nspark.b=2": {"spark.b": "2"},
    "spark.a=1\nspark.a=2": {"spark.a": "2"},
    "spark.a=x,\\\n   y,\\\n\ty2": {"spark.a": "x,y,y2"},
    "spark.a=x\\\\\nspark.b=y": {"spark.a": "x\\", "spark.b": "y"},
    "spark.a=x\\\n# spark.b=y": {"spark.a": "x# spark.b=y"},
    "spark.a=x\\\n\nspark.b=y": {"spark.a": "x", "spark.b": "y"},
    "# comment \\\nspark.b=y": {"spark.b": "y"},
    "\\\n#x\nspark.b=y": {"spark.b": "y"},
    "\\\nspark.a=1": {"spark.a": "1"},
    "spark.a=x\\": {"spark.a": "x"},
    r"spark.a\ b=1": {"spark.a b": "1"},
    r"spark.a\=b\:c=1": {"spark.a=b:c": "1"},
    r"spark.a=\u00e9\u0041": {"spark.a": "éA"},
    r"spark.a=C:\\dir\q": {"spark.a": r"C:\dirq"},
    r"spark.a=1\n": {"spark.a": "1\n"},
    r"spark.a=\ud83d\ude00": {"spark.a": "😀"},
    r"spark.a=\t1\t": {"spark.a": "1"},
    "spark.a=1\rspark.b=2\r\nspark.c=3": {"spark.a": "1", "spark.b": "2", "spark.c": "3"},
    "spark.a=x\\\r\n  y": {"spark.a": "xy"},
    "spark.a=é\u2028b\x0bc": {"spark.a": "é\u2028b\x0bc"},
    "": {},
}
JAVA = """
import java.io.*; import java.nio.charset.StandardCharsets; import java.util.*;
public class Reads {
  public static void main(String[] files) throws Exception {
    for (String file : files) {
      Properties p = new Properties();
      p.load(new InputStreamReader(new FileInputStream(file), StandardCharsets.UTF_8));
      StringBuilder out = new StringBuilder();
      for (String k : new TreeSet<>(p.stringPropertyNames())) {
        for (char c : (k + "=" + p.getProperty(k)).toCharArray()) out.append(String.format("%04x", (int) c));
        out.append('|');
      }
      System.out.println(out);
    }
  }
}
"""


@pytest.mark.parametrize("text", CASES)
def test_parse(text):
    assert parse_properties(text) == CASES[text]


@pytest.mark.spark
@pytest.mark.truth
def test_java_reads_the_same(tmp_path):
    """``java.util.Properties`` itself, on the keys and values before Spark's trimming."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not on PATH: cannot ask java.util.Properties itself")
    (tmp_path / "Reads.java").write_text(JAVA)
    files = []
    for number, text in enumerate(CASES):
        file = tmp_path / f"{number}.conf"
        file.write_bytes(text.encode())
        files.append(str(file))
    done = subprocess.run(
        ["java", str(tmp_path / "Reads.java"), *files], capture_output=True, text=True, check=True, timeout=120
    )
    for (text, ours), line in zip(CASES.items(), done.stdout.splitlines(), strict=True):
        pairs = [bytes.fromhex(pair).decode("utf-16-be") for pair in line.split("|")[:-1]]
        theirs = [pair for pair in pairs if pair.startswith("spark.")]
        assert sorted(f"{key}={value}" for key, value in ours.items()) == sorted(
            pair.rstrip(" \t").replace("=\t", "=") for pair in theirs
        ), text


def test_bad_escape_names_file_and_line_but_not_the_value(tmp_path):
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.a=1\n\nspark.password=hunter2\\u12\n")
    with pytest.raises(PropertiesFileError, match=r"spark-defaults\.conf.*line 3") as caught:
        read_properties_file(file)
    assert "hunter2" not in str(caught.value)


def test_missing_file_is_a_clear_error(tmp_path):
    with pytest.raises(PropertiesFileError, match=r"Cannot read .*nowhere\.conf: No such file"):
        read_properties_file(tmp_path / "nowhere.conf")
    with pytest.raises(PropertiesFileError, match="Is a directory"):
        read_properties_file(tmp_path)


def test_file_is_utf8(tmp_path):
    file = tmp_path / "x.conf"
    file.write_bytes("spark.a é\nspark.b ".encode() + b"\xff\n")
    assert read_properties_file(file) == {"spark.a": "é", "spark.b": "\ufffd"}


def escape(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


@given(st.dictionaries(st.text("ab.=: \\#", min_size=1), st.text(st.characters(max_codepoint=0xD7FF))))
def test_what_is_escaped_comes_back(pairs):
    text = "\n".join(f"{escape('spark.' + key)}={escape(value)}" for key, value in pairs.items())
    trimmed = "".join(chr(code) for code in range(0x21) if code not in (10, 13))
    assert parse_properties(text) == {"spark." + key: value.strip(trimmed) for key, value in pairs.items()}


@given(st.text(st.sampled_from("spark.ab=: \\\n\r\t#!u0")))
def test_any_text_parses_or_is_refused(text):
    try:
        parsed = parse_properties(text)
    except ValueError as error:
        assert "hexadecimal" in str(error)  # noqa: PT017
    else:
        assert all(key.startswith("spark.") for key in parsed)


def test_default_file(tmp_path):
    home, conf = tmp_path / "home", tmp_path / "conf"
    (home / "conf").mkdir(parents=True)
    conf.mkdir()
    in_home, in_conf = home / "conf" / "spark-defaults.conf", conf / "spark-defaults.conf"
    assert default_properties_file(home, {}) is None
    in_home.touch()
    assert default_properties_file(home, {}) == in_home
    assert default_properties_file(None, {"SPARK_HOME": str(home)}) == in_home
    assert default_properties_file(home, {"SPARK_CONF_DIR": ""}) == in_home
    assert default_properties_file(home, {"SPARK_CONF_DIR": str(conf)}) is None
    in_conf.touch()
    assert default_properties_file(home, {"SPARK_CONF_DIR": str(conf)}) == in_conf
    assert default_properties_file(None, {}) is None


@given(
    st.dictionaries(
        st.text(max_size=20).map(lambda text: "spark." + text),
        # As Spark trims what it reads, only text that survives that can come back.
        st.text(max_size=40).map(lambda text: text.strip("".join(map(chr, range(0x21))))),
        max_size=5,
    ),
    st.sampled_from([b"", b"spark.a 1", b"spark.a=1\\", b"# comment\\", b"spark.z 9\n\n"]),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str], base: bytes
) -> None:
    folder = tmp_path_factory.mktemp("properties")
    (folder / "base.conf").write_bytes(base)
    before = read_properties_file(folder / "base.conf")
    write_properties_file(folder / "private.conf", properties, base=folder / "base.conf")
    assert read_properties_file(folder / "private.conf") == {**before, **properties}
    assert (folder / "private.conf").stat().st_mode & 0o777 == 0o600
    assert (folder / "base.conf").read_bytes() == base


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("kept")
    with pytest.raises(FileExistsError):
        write_properties_file(tmp_path / "there", {"spark.a": "1"}, base=None)
    assert (tmp_path / "there").read_text() == "kept"
