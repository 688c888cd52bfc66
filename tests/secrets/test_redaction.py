from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_lineage.secrets.redaction import (
    redact,
    redact_command,
    redact_dataset,
    redact_value,
)
from spark_lineage.secrets.secret_keys import _KEY_KINDS, _KINDS, is_secret_key

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk"
GITHUB = "ghp_" + "a1B2" * 9
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"

# Text, and the part of it that must be gone.
PLANTED = [
    ("[('X-Api-Key', 'hunter2')]", "hunter2"),
    ("connect(('password', 'hunter2'))", "hunter2"),
    ("Cookie: a=b; session=hunter2", "hunter2"),
    ('os.putenv("DB_PASSWORD","hunter2")', "hunter2"),
    ('os.environ.setdefault("DB_PASSWORD", "hunter2")', "hunter2"),
    ("userpw=hunter2", "hunter2"),
    ("X-Functions-Key: hunter2", "hunter2"),
    ("jwt_key=hunter2", "hunter2"),
    ("JSESSIONID=hunter2", "hunter2"),
    ("sent with SG.hunter2hunter2hunter2.hunter2hunter2hunter2", "hunter2"),
    ("pulled with dckr_pat_hunter2hunter2hunter2", "hunter2"),
    ("password=hunter2", "hunter2"),
    ("PASSWORD = hunter2 and more", "hunter2"),
    ("passwd: hunter2", "hunter2"),
    ("pwd=hunter2;", "hunter2"),
    ('{"password": "hunter2", "user": "x"}', "hunter2"),
    ("{'secret': 'hun ter2'}", "hun ter2"),
    ('password = "hun ter2"', "ter2"),
    ("password='it''s hunter2'", "hunter2"),
    (r'"password": "a\"hunter2"', "hunter2"),
    (r'"{\"password\": \"hunter2\"}"', "hunter2"),
    ('password="never closed hunter2', "hunter2"),
    ("spark.hadoop.fs.s3a.secret.key=hunter2", "hunter2"),
    ("spark.hadoop.fs.s3a.access.key=hunter2", "hunter2"),
    ("spark.openlineage.transport.auth.apiKey=hunter2", "hunter2"),
    ("spark.openlineage.transport.auth.apiKey -> hunter2", "hunter2"),
    ("transport.auth.user=hunter2", "hunter2"),
    ("api_key: hunter2", "hunter2"),
    ("API-KEY=hunter2", "hunter2"),
    ("accessToken=hunter2", "hunter2"),
    ("AWS_SESSION_TOKEN=hunter2", "hunter2"),
    ("X-Vault-Token: hunter2", "hunter2"),
    ("spark.ssl.keyStorePassword hunter1 spark.ssl.keyPassword=hunter2", "hunter2"),
    ("private_key=hunter2", "hunter2"),
    ("fs.azure.account.key.acc.dfs.core.windows.net=hunter2==", "hunter2"),
    ("fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net=hunter2", "hunter2"),
    ("google.credential=hunter2", "hunter2"),
    ("Map(user -> me, password -> hunter2, url -> x)", "hunter2"),
    ("java.sql.SQLException: denied {user=me, password=hunter2}", "hunter2"),
    ("CREATE TABLE t OPTIONS (url 'x', password='hunter2')", "hunter2"),
    ("kafka.sasl.jaas.config=org.x.PlainLoginModule required username=me hunter2;", "hunter2"),
    ('sasl.jaas.config=org.x.Login required username="me" password="hunter2";', "hunter2"),
    ('"auth": {"type": "api_key", "value": "hunter2"}', "hunter2"),
    ('"token": ["hunter1", "hunter2"]', "hunter2"),
    ("PWD={hun;ter2};Server=x", "ter2"),
    ("https://me:hunter2@host:8080/path", "hunter2"),
    ("https://hunter2@github.com/o/r", "hunter2"),
    ("redis://:hunter2@host:6379/0", "hunter2"),
    ("mongodb://me:hun@ter2@host/db", "ter2"),
    (f"s3a://{AWS_ID}:{AWS_SECRET}@bucket/key", "bPxRfiCY"),
    ("jdbc:postgresql://h/db?user=me&password=hunter2&ssl=true", "hunter2"),
    ("jdbc:sqlserver://h:1433;databaseName=d;user=me;PASSWORD=hunter2;encrypt=true", "hunter2"),
    ("jdbc:oracle:thin:scott/hunter2@h:1521:sid", "hunter2"),
    ("jdbc:oracle:thin:scott/hunter2@//h:1521/service", "hunter2"),
    ('jdbc:oracle:thin:scott/"hun@ter2"@//h:1521/service', "ter2"),
    ("jdbc:teradata://h/DATABASE=d,USER=u,PASSWORD=hunter2", "hunter2"),
    ("https://acc.blob.core.windows.net/c/b?sv=2020&sig=hunter2%3D&se=1", "hunter2"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Credential=hunter1&X-Amz-Signature=hunter2", "hunter2"),
    ("https://h/x?access_token=hunter2", "hunter2"),
    ("https://h/x?redirect=y&password%3Dhunter2", "hunter2"),
    ("Authorization: Bearer hunter2", "hunter2"),
    ("authorization: Basic aHVudGVyMg==", "aHVudGVyMg"),
    ("(db.password,hunter2)", "hunter2"),
    (r"password\u003dhunter2", "hunter2"),
    ("%7B%22password%22%3A%22hunter2%22%7D", "hunter2"),
    ("{&quot;password&quot;: &quot;hunter2&quot;}", "hunter2"),
    ("password&#61;hunter2", "hunter2"),
    (r'{"message": "BASIC setPassword(\"Zq7x\")"}', "Zq7x"),
    ("curl -H 'Authorization: Bearer hunter2' http://h", "hunter2"),
    ('"Authorization": "Bearer hunter2"', "hunter2"),
    ("sent Bearer hunter2", "hunter2"),
    ("bearer password: hunter2", "hunter2"),
    ("sent Basic bWU6aHVudGVyMg==", "bWU6aHVudGVyMg"),
    (f"got {JWT} from there", "eyJzdWIi"),
    (f"id {AWS_ID}", "IOSFODNN7"),
    (f"{AWS_ID}:{AWS_SECRET}", "K7MDENG"),
    (f"pushed with {GITHUB}", "a1B2a1B2"),
    ("xoxb" + "-123456789012-abcdefABCDEF", "abcdefABCDEF"),
    ("https://hooks.slack.com" + "/services/T000/B000/hunter2hunter2", "hunter2"),
    ("-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2\n-----END RSA PRIVATE KEY-----", "hunter2"),
    (r"-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", "hunter2"),
    ("-----BEGIN PRIVATE KEY-----\nhunter2 cut off", "hunter2"),
    ("spark-submit --password hunter2 app.py", "hunter2"),
    ("spark-submit --conf spark.x.password=hunter2 app.py", "hunter2"),
    ("-Djavax.net.ssl.trustStorePassword=hunter2 -Dx=y", "hunter2"),
    ("spark.jdbc.password   hunter2\nspark.x y", "hunter2"),
    ('df.write.option("password", "hunter2").save()', "hunter2"),
    ("[('spark.x.password', 'hunter2')]", "hunter2"),
    ("ALTER USER me IDENTIFIED BY 'hunter2'", "hunter2"),
    ("<password>hunter2</password>", "hunter2"),
    ("<name>fs.s3a.secret.key</name>\n<value>hunter2</value>", "hunter2"),
    ("<name>my.password</name><value><![CDATA[hun<ter2]]></value>", "ter2"),
    ("<password>\n  <![CDATA[hun<ter2]]>\n</password>", "ter2"),
    ('<password kind="plain">hunter2</password>', "hunter2"),
    ('<s:password xmlns:s="x">hunter2</s:password>', "hunter2"),
    ('<entry key="db.password">hunter2</entry>', "hunter2"),
    ('<property name="db.password" value="hunter2"/>', "hunter2"),
    ('<user name="me" password="hunter2"/>', "hunter2"),
    ('{"name": "DB_PASSWORD", "value": "hunter2"}', "hunter2"),
    ("{'value': 'hun{ter2', 'name': 'DB_PASSWORD'}", "ter2"),
    ("{'name': 'DB_PASSWORD', 'value': 'hunter2', 'value_from': None}", "hunter2"),
    (r'"{\"name\": \"DB_PASSWORD\", \"value\": \"hunter2\"}"', "hunter2"),
    ('[{"Key": "x", "Value": "1"}, {"Key": "token", "Value": "hunter2"}]', "hunter2"),
    ("- name: X\n  value: 1\n- name: DB_PASSWORD\n  value: hunter2\n", "hunter2"),
    ("V1EnvVar(name='DB_PASSWORD', value='hunter2')", "hunter2"),
    ('os.environ["DB_PASSWORD"] = "hunter2"', "hunter2"),
    ("pw=hunter2", "hunter2"),
    ("DBPASS=hunter2", "hunter2"),
    ("passWord=hunter2", "hunter2"),
    ("pass_phrase: hunter2", "hunter2"),
    ("AWS_CREDS=hunter2", "hunter2"),
    ("fernet_key = hunter2", "hunter2"),
    ("spark.x.masterKey=hunter2", "hunter2"),
    ("Ocp-Apim-Subscription-Key: hunter2", "hunter2"),
    ("charged with sk" + "_live_51H8abcdEFGHijkl", "51H8abcd"),
    ("hvs" + ".CAESIJabcdefghijkl", "CAESIJ"),
    ("ya29" + ".a0AfH6SMBabcdefgh", "a0AfH6"),
    ("GOCSPX" + "-abcdEFGH1234ijkl", "abcdEFGH"),
    ("xapp" + "-1-A0123-456-abcdef", "abcdef"),
    ("<property><name>x.password</name><description>d</description><value>hunter2</value></property>", "hunter2"),
    ("<property>\n <name>x.password</name>\n <final/><!-- x -->\n <value>hunter2</value>", "hunter2"),
    ("<dict><key>password</key><string>hunter2</string></dict>", "hunter2"),
    ('<entry key="password" type="x" value="hunter2"/>', "hunter2"),
    ('{"name": "DB_PASSWORD", "type": "string", "value": "hunter2"}', "hunter2"),
    ('{"name": "DB_PASSWORD", "meta": {"type": "a > b"}, "value": "hunter2"}', "hunter2"),
    (r'"{\"name\": \"DB_PASSWORD\", \"about\": \"a > b\", \"value\": \"hunter2\"}"', "hunter2"),
    ("{'value': 'hunter2', 'about': '<none>', 'name': 'DB_PASSWORD'}", "hunter2"),
    ("spark.hadoop.fs.s3a.secret.key            hunter2", "hunter2"),
    ("spark.hadoop.fs.s3a.secret.key\t\t\t\t\t\t\t\t\t\thunter2  # mine", "hunter2"),
    ("spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net  hunter2==", "hunter2"),
    ("password             =             hunter2", "hunter2"),
    ("--password              hunter2", "hunter2"),
    ("keytool -storepass hunter2 -list", "hunter2"),
    ("keytool -keypass hunter2", "hunter2"),
    ("run -password hunter2", "hunter2"),
    ("Command '['run', '--password', 'hunter2']' returned 1", "hunter2"),
    ("CREATE USER me IDENTIFIED BY hunter2", "hunter2"),
    ("alter user me identified by hunter2;", "hunter2"),
    ("CREATE DATABASE LINK l CONNECT TO me IDENTIFIED BY hunter2 USING 'x'", "hunter2"),
    ("CREATE USER me IDENTIFIED WITH sha256_password BY 'hunter2'", "hunter2"),
    ("ALTER USER me IDENTIFIED BY\n  'hunter2'", "hunter2"),
    ("CREATE USER me WITH ENCRYPTED PASSWORD 'it''s hunter2'", "hunter2"),
    ("SET PASSWORD FOR 'me'@'h' = 'hunter2'", "hunter2"),
    ("https://me:pa#hunter2@host/", "hunter2"),
    ("jdbc:x://me:pa?hunter2@h", "hunter2"),
    ("https://me:p@#hunter2@host/?a=b@c", "hunter2"),
    ("https://me:a?b=hunter2@host/", "hunter2"),
    ("redis://:pa#hunter2@host", "hunter2"),
    ("https://me:pa hunter2@host/", "hunter2"),
    ("curl -u me:hunter2 http://x", "hunter2"),
    ("curl -sSu 'me:hun ter2' http://x", "ter2"),
    ("sshpass -p hunter2 ssh u@h", "hunter2"),
    ("sshpass -phunter2 ssh u@h", "hunter2"),
    ("Command ['sshpass', '-p', 'hunter2', 'ssh'] failed", "hunter2"),
    ("docker login -u bob -p hunter2 reg.io", "hunter2"),
    ("helm registry login reg.io -u bob -p=hunter2", "hunter2"),
    ("echo hunter2 | docker login --password-stdin reg.io", "hunter2"),
    ("echo hunter2 | kinit alice@EXAMPLE", "hunter2"),
    ("kinit alice <<< hunter2", "hunter2"),
    ("printf 'hunter2' | sudo -S ls", "hunter2"),
    ("mysql -u root -phunter2 shop", "hunter2"),
    ("beeline -u jdbc:hive2://h:1/ -n bob -p hunter2", "hunter2"),
    ("sqlcmd -U sa -P hunter2 -Q q", "hunter2"),
    ("ldapsearch -D cn=x -w hunter2", "hunter2"),
    ("redis-cli -h h -a hunter2 ping", "hunter2"),
    ("db.example.com:5432:shop:alice:hunter2", "hunter2"),
    ("# comment\n*:*:*:alice:hunter2\n", "hunter2"),
    ("machine ftp.example.com login bob password hunter2", "hunter2"),
    ("machine h\n  login bob\n  password hunter2\n", "hunter2"),
    ("Command '['curl', '-u', 'me:hunter2']' returned 22", "hunter2"),
    ("--user me:hunter2", "hunter2"),
    ("--user=me:hunter2", "hunter2"),
    ("--proxy-user me:hunter2", "hunter2"),
    ("password=\x1b[31mhunter2\x1b[0m", "hunter2"),
    ("\x1b[1mpassword\x1b[0m=hunter2", "hunter2"),
    ("\x1b[1mpw\x1b[0m=hunter2", "hunter2"),
    ('\x1b[34m"password"\x1b[0m: \x1b[32m"hunter2"\x1b[0m', "hunter2"),
    (r"\u001b[1mpw\u001b[0m=hunter2", "hunter2"),
    ('Authorization: Digest username="me", realm="r", uri="/", response="hunter2"', "hunter2"),
    (r'-H "Authorization: Digest username=\"me\", response=\"hunter2\""', "hunter2"),
    ('Authorization: Hawk id="me", ts="1", mac="hunter2"', "hunter2"),
    ("authorization=hunter2 user=bob", "hunter2"),
    ('x.setPassword("hunter2")', "hunter2"),
    ('builder().password("hun ter2").build()', "ter2"),
    ("withSecretKey('hunter2')", "hunter2"),
    ("SELECT PASSWORD('hunter2')", "hunter2"),
    (r'{"code": "x.setPassword(\"hunter2\")"}', "hunter2"),
    ("pass=hunter2", "hunter2"),
    ("pass: 12345678", "12345678"),
    ("PASS=12hunter2", "hunter2"),
    ("pass=12.hunter2", "hunter2"),
    ("pass=12,hunter2", "hunter2"),
    ("TOKEN=HUNTER", "HUNTER"),
    ("token: HUNTER", "HUNTER"),
    ("token=abc123", "abc123"),
    ("unexpected token: abc123", "abc123"),
    ("token: {'hunter2'}", "hunter2"),
    ("TOKEN=ABCDEFGHIJ1234", "ABCDEFGHIJ"),
    ("auth=hunter2", "hunter2"),
    ("signature=3af9c2d1", "3af9c2d1"),
    ("x%3DapiKey=hunter2", "hunter2"),
    (r"a line\ntoken=hunter2", "hunter2"),
]

# Lines as Spark, Hadoop, Hive, Airflow, dbt, pytest and Java print them.
LOGS = (Path(__file__).parent / "harmless_lines.txt").read_text()

HARMLESS = [
    "== Physical Plan ==\n*(1) Project [secret#1]\n+- PushedFilters: [IsNotNull(token), EqualTo(token,abc)]",
    'df.select("password", "name")',
    "WHERE kind IN ('password', 'token')",
    "",
    "s3://bucket/key",
    "file:/a/b",
    "/data/cust.csv",
    "hdfs://nn:8020/user/hive/warehouse/db.db/t",
    "abfss://container@account.dfs.core.windows.net/path",
    "wasbs://container@account.blob.core.windows.net/a b",
    "sftp://me@host/file",
    "kafka://a:9092,b:9092",
    "jdbc:postgresql://host:5432/db?user=me&ssl=true",
    "http://host:4040/jobs/?id=3#at@x",
    "spark.yarn.tags=a,b",
    "spark.redaction.regex=(?i)secret|password|token|access[.]?key|api[.]?key",
    "spark.hadoop.fs.s3a.aws.credentials.provider=org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "spark.security.credentials.hive.enabled=false",
    "spark.authenticate=true spark.authenticate.enableSaslEncryption=false",
    "author=x, authority: y, tokenizer=x, secretary=z, design=1, signal: 9",
    "tokens=5 total_tokens: 4096 max_tokens=12 token_count=7",
    "root\n |-- password: string (nullable = true)\n |-- token: long",
    "struct<token:string,secret:int>",
    "SELECT token, password FROM users WHERE token IS NULL",
    "password=***",
    "spark.my.password=*********(redacted)",
    "password=",
    '"password": null, "secret": false',
    "javax.security.auth.login.LoginException: Unable to obtain password from user",
    "\tat org.apache.spark.deploy.security.TokenCache.get(TokenCache.java:120)",
    "org.apache.hadoop.security.token.SecretManager$InvalidToken: token (x for y) can't be found in cache",
    "EnvironmentVariableCredentialsProvider: Unable to load",
    'df.select("token", "amount")',
    "spark.my.password is not set",
    '{"name": "password", "type": "string"}, {"value": 3}',
    "name=retries value=3",
    "bypass=3 compass: north lowpass=0.2 credsize=1",
    "FROM hvs.customer_orders_2024 JOIN spark.sk_live_orders",
    '<entry key="size">3</entry><token name="x"/>',
    "Bearer token is missing; Basic authentication is off",
    "Basic statistics, and a bearer of news.",
    "eyJ is how a token begins",
    "task-1234-5678-90ab AKIA ghp_short",
    "24/01/01 12:00:00 INFO SparkContext: Running Spark version 4.0.1",
    "Schlüssel ≠ 密码 \u0000 \ud800",
]


@pytest.mark.parametrize(("text", "secret"), PLANTED)
def test_a_planted_secret_is_gone(text: str, secret: str) -> None:
    assert secret in text
    masked = redact(text)
    assert secret not in masked
    assert "***" in masked
    assert redact(masked) == masked


@pytest.mark.parametrize("text", [*HARMLESS, *LOGS.split("\n"), LOGS])
def test_harmless_text_stays_byte_for_byte(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2", "password=***"),
        ("{password=a,user=b}", "{password=***,user=b}"),
        ('{"password": "a b", "user": "b"}', '{"password": "***", "user": "b"}'),
        ("https://me:pw@host:8080/p", "https://***@host:8080/p"),
        ("jdbc:x://h?password=a&ssl=true", "jdbc:x://h?password=***&ssl=true"),
        ("jdbc:oracle:thin:scott/tiger@//h:1521/x", "jdbc:oracle:thin:***@//h:1521/x"),
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("(--token abc --name x)", "(--token *** --name x)"),
        ("https://me:p?w@host?mail=a@b", "https://***@host?mail=a@b"),
        ("https://me:p w@host:8080/p", "https://***@host:8080/p"),
        ("curl -u me:pw -o x", "curl -u me:*** -o x"),
        ("ALTER USER me IDENTIFIED BY pw;", "ALTER USER me IDENTIFIED BY ***;"),
        ('b.setPassword("pw").build()', 'b.setPassword("***").build()'),
        ("spark.x.token    pw  # mine", "spark.x.token    ***  # mine"),
        ("\x1b[1mpw\x1b[0m=a \x1b[1mb\x1b[0m", "pw=*** b"),
        ('{"Authorization": "Digest a=\\"b\\", response=\\"c\\"", "d": "e"}', '{"Authorization": "***", "d": "e"}'),
    ],
)
def test_only_the_secret_goes(text: str, masked: str) -> None:
    assert redact(text) == masked


FRAGMENTS = [
    "password", "token", "auth", ".", "=", ":", " ", '"', "'", "\\", "://", "@", "?", "&", ";", ",", "{", "}", "(", ")",
    "[", "]", "<", ">", "</", "-", "--", "->", "\n", "***", "Bearer ", "Basic ", "a", "B1", "eyJ", "eyJhbGciOi", ".ab",
    "AKIAABCDEFGHIJKLMNOP", "A" * 40, "-----BEGIN KEY-----", "-----END KEY-----", "jdbc:oracle:thin:", "http", "u/p",
    "sasl.jaas.config", "<name>", "</name><value>", "</value>", "null", "true", "%3D", "ghp_" + "a1" * 12, "secretKey",
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
@example('password=password="')
@example("token=(true),token:x")
def test_redaction_is_idempotent_on_what_looks_like_secrets(text: str) -> None:
    masked = redact(text)
    assert redact(masked) == masked


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.sampled_from([*_KINDS, "api", "Key", "_", "db", "wd", "word", "Phrase", "KEY", "s", "."])
        | st.text(max_size=2),
        max_size=5,
    )
)
def test_whatever_is_a_key_of_a_secret_is_found_by_the_words_that_are_looked_for_first(parts: list[str]) -> None:
    key = "".join(parts)
    assert not is_secret_key(key) or re.search(_KEY_KINDS, key, re.IGNORECASE)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_redaction_is_idempotent_on_any_text(text: str) -> None:
    masked = redact(text)
    assert redact(masked) == masked


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1).map(lambda word: f"hunter2{word}"))
def test_a_word_under_a_secret_key_never_survives(word: str) -> None:
    assert word not in redact(f"the spark.db.password={word}, it was")


# A megabyte of each took 0.02 to 0.5 s when this was written; quadratic time would be minutes, and 4 s of this.
@pytest.mark.parametrize(
    "unit",
    ["a", "a.", "://", "://a:", "://@", "@", "eyJ", "a=", "token=", 'password="', "password=,", "token:&a", '\\"',
     "key=a&", "jdbc:oracle:thin:", "-----BEGIN A-----", "<a>", "--token ", "Bearer ", "password={", "token:string,",
     "sasl.jaas.config=true", "sk-aaaaaaaaaaaaaaaaaaaaaaaa_", "<name>", "\\", "$",
     "spark.a ", "'token','", "PASSWORD '", "<a><![CDATA[</", "<a name='</", "name=token value={",
     "value={name=token ", "password  ", "spark.password  ", 'token(\\"', "password('", "PASSWORD ''",
     'IDENTIFIED BY "', "<name>a</name><b>", "<name>token</name>", "curl -u ", "--user a:", "://a:b?", "://a:b c", "://a:@",
     "sshpass ", "mysql -a ", "docker login ", "bcp,", "echo kinit ", "kinit <", "machine h login a ", "h:5432:a:b:",
     "\x1b[1m", "\x1b[1mtoken\x1b[0m=",
     'authorization: a b="', "authorization: a b=c,", "signature: (", "expected token: {",
     "name=token {", 'name=token "', "value=a '"],
)  # fmt: skip
def test_a_long_hostile_line_takes_linear_time(unit: str) -> None:
    text = unit * (250_000 // len(unit))
    began = time.process_time()
    assert redact(text).count("\n") == 0
    assert time.process_time() - began < 3


def test_properties_are_masked_by_key_and_by_shape() -> None:
    conf = {
        "spark.hadoop.fs.s3a.secret.key": "a b;c&d",
        "spark.openlineage.transport.auth.apiKey": "k",
        "spark.driver.extraJavaOptions": "-Dx.password=abc -Dy=1",
        "spark.openlineage.transport.url": "http://me:pw@marquez:5000",
        "spark.yarn.tags": "a,b",
        "spark.some.password": "",
        "spark.security.credentials.hive.enabled": "false",
    }
    assert redact_value(conf) == {
        "spark.hadoop.fs.s3a.secret.key": "***",
        "spark.openlineage.transport.auth.apiKey": "***",
        "spark.driver.extraJavaOptions": "-Dx.password=*** -Dy=1",
        "spark.openlineage.transport.url": "http://***@marquez:5000",
        "spark.yarn.tags": "a,b",
        "spark.some.password": "",
        "spark.security.credentials.hive.enabled": "false",
    }


def test_a_command_keeps_its_arguments_apart() -> None:
    argv = [
        "spark-submit", "--master", "yarn", "--conf", "spark.x.password=a b;c", "--conf=spark.x.token=t", "--keytab",
        "/etc/me.keytab", "--keytab=/etc/me.keytab", "--principal", "me@REALM", "-c", "spark.x.secret=s", "app.py",
        "--api-key", "k", "--token", "--verbose", "jdbc:x://h?password=p&a=b", "x=1", f"{GITHUB}",
    ]  # fmt: skip
    assert redact_command(argv) == [
        "spark-submit", "--master", "yarn", "--conf", "spark.x.password=***", "--conf=spark.x.token=***", "--keytab",
        "***", "--keytab=***", "--principal", "me@REALM", "-c", "spark.x.secret=***", "app.py",
        "--api-key", "***", "--token", "--verbose", "jdbc:x://h?password=***&a=b", "x=1", "***",
    ]  # fmt: skip
    assert redact_command(redact_command(argv)) == redact_command(argv)


@pytest.mark.parametrize(
    ("argv", "masked"),
    [
        (["keytool", "-storepass", "pw", "-list"], ["keytool", "-storepass", "***", "-list"]),
        (["/bin/curl", "-u", "me:p w", "x"], ["/bin/curl", "-u", "me:***", "x"]),
        (["run", "--user", "me:pw", "--proxy-user=me:pw"], ["run", "--user", "me:***", "--proxy-user=me:***"]),
        (["run", "PASS\x1b[1m=<value>"], ["run", "PASS=***"]),
        (["\x1b[1m-PASSWORD FOR ", "=x"], ["-PASSWORD *** ", "=x"]),
        *((argv, argv) for argv in (["run", "-u", "host:port"], ["run", "--user", "1000:1000", "--proxy-user", "me"])),
    ],
)
def test_a_command_loses_the_passwords_behind_its_flags(argv: list[str], masked: list[str]) -> None:
    assert redact_command(argv) == masked
    assert redact_command(masked) == masked


@pytest.mark.parametrize(
    ("pair", "masked"),
    [
        (["X-Api-Key", "hunter"], ["X-Api-Key", "***"]),
        (["db.password", "hunter"], ["db.password", "***"]),
        (["password", "hunter2"], ["password", "***"]),
        ([["token", "p@ss"], ["user", "me"]], [["token", "***"], ["user", "me"]]),
        *((names, names) for names in (["password", "user_id"], ["token", "Betrag"], ["token", "line_2", "hunter2"])),
    ],
)
def test_a_list_of_a_key_and_its_secret_is_no_list_of_columns(pair: list[str], masked: list[str]) -> None:
    assert redact_value({"x": pair}) == {"x": masked}
    assert redact_value(masked) == masked


def test_nested_values_are_masked_all_the_way_down() -> None:
    value = {
        "transport": {"auth": {"apiKey": "k"}, "url": "http://me:pw@h"},
        "list": ["password=x", ("a", {"token": 12, "password": None, "secret": True})],
        "count": 3,
    }
    assert redact_value(value) == {
        "transport": {"auth": "***", "url": "http://***@h"},
        "list": ["password=***", ["a", {"token": "***", "password": None, "secret": True}]],
        "count": 3,
    }


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("s3://me:pw@bucket", "s3://***@bucket"),
        ("jdbc:x://h/db?password=pw&a=b", "jdbc:x://h/db?password=***&a=b"),
        ("sqlserver://h;password=pw;a=b", "sqlserver://h;password=***;a=b"),
        ("/data/token=7/password=x", "/data/token=7/password=x"),
        *(
            (name, name)
            for name in ("Basic Salary2023", "Bearer shares", "token: Basic QWxhZGRpbjpvcA==", "sk-" + "a1" * 12)
        ),
        ("abfss://c@acc.dfs.core.windows.net", "abfss://c@acc.dfs.core.windows.net"),
    ],
)
def test_a_dataset_loses_logins_and_secret_parameters_only(name: str, masked: str) -> None:
    assert redact_dataset(name) == masked
    assert redact_dataset(masked) == masked


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_a_dataset_is_masked_once_and_for_all(name: str) -> None:
    masked = redact_dataset(name)
    assert redact_dataset(masked) == masked
