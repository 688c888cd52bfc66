"""Commands about a database that is a catalog with a blank in its name; the program looks at their results."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for statement in (
    "CREATE NAMESPACE `the db`.`S 1`",
    """CREATE TABLE `the db`.`S 1`.orders (`a b` INT, `c.d` STRING COMMENT 'x, y', price DECIMAL(10,2),
       at TIMESTAMP NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS `the db`.`S 1`.orders (`a b` INT)",
    "ALTER TABLE `the db`.`S 1`.orders ADD COLUMNS (tax INT)",
    "ALTER TABLE `the db`.`S 1`.orders RENAME COLUMN `c.d` TO `e = f`",
    "ALTER TABLE `the db`.`S 1`.orders DROP COLUMN tax",
    "CREATE TABLE `the db`.`S 1`.made (`q r` INT)",
    "ALTER TABLE `the db`.`S 1`.made RENAME TO `S 1`.named",
    "DROP TABLE `the db`.`S 1`.named",
    "DROP TABLE IF EXISTS `the db`.`S 1`.named",
    "DROP TABLE `the db`.`S 1`.orders",
    "DROP NAMESPACE `the db`.`S 1`",
):
    try:
        spark.sql(statement).collect()
    except Exception as error:
        print("FAILED", statement, str(error)[:200])
spark.stop()
