"""Models of dbt: staging views over raw tables, and two marts, one of them with a pivot of payment methods."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("""
    CREATE OR REPLACE VIEW analytics.stg_customers AS
    WITH source AS (SELECT * FROM raw.customers),
         renamed AS (SELECT id AS customer_id, first_name, last_name FROM source)
    SELECT * FROM renamed
""")
spark.sql("""
    CREATE OR REPLACE VIEW analytics.stg_orders AS
    WITH source AS (SELECT * FROM raw.orders),
         renamed AS (SELECT id AS order_id, user_id AS customer_id, order_date, status FROM source)
    SELECT * FROM renamed
""")
spark.sql("""
    CREATE OR REPLACE VIEW analytics.stg_payments AS
    SELECT id AS payment_id, order_id, method AS payment_method, amount / 100 AS amount FROM raw.payments
""")
spark.sql("""
    CREATE TABLE analytics.customers USING parquet AS
    WITH customers AS (SELECT * FROM analytics.stg_customers),
         orders AS (SELECT * FROM analytics.stg_orders),
         payments AS (SELECT * FROM analytics.stg_payments),
         customer_orders AS (
             SELECT customer_id, MIN(order_date) AS first_order, COUNT(order_id) AS number_of_orders
             FROM orders GROUP BY customer_id
         ),
         customer_payments AS (
             SELECT orders.customer_id, SUM(amount) AS total_amount
             FROM payments LEFT JOIN orders ON payments.order_id = orders.order_id GROUP BY orders.customer_id
         )
    SELECT customers.customer_id, CONCAT_WS(' ', first_name, last_name) AS full_name,
           first_order, number_of_orders, total_amount AS customer_lifetime_value
    FROM customers
    LEFT JOIN customer_orders ON customers.customer_id = customer_orders.customer_id
    LEFT JOIN customer_payments ON customers.customer_id = customer_payments.customer_id
""")
methods = ("card", "coupon", "transfer")
sums = ", ".join(
    f"SUM(CASE WHEN payment_method = '{each}' THEN amount ELSE 0 END) AS {each}_amount" for each in methods
)
spark.sql(f"""
    CREATE TABLE analytics.orders USING parquet AS
    WITH order_payments AS (
        SELECT order_id, {sums}, SUM(amount) AS total_amount FROM analytics.stg_payments GROUP BY order_id
    )
    SELECT o.order_id, o.customer_id, o.order_date, o.status,
           {", ".join(f"p.{each}_amount" for each in methods)}, p.total_amount AS amount
    FROM analytics.stg_orders o LEFT JOIN order_payments p ON o.order_id = p.order_id
""")
spark.stop()
