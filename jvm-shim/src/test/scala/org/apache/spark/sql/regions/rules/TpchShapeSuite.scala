package org.apache.spark.sql.regions.rules

/** The shapes of TPC-H's queries over tables of its schema. */
class TpchShapeSuite extends SignerSuite {
  private lazy val tables: Unit = {
    def table(name: String, columns: String): Unit = {
      val path = SignerFixture.directory.resolve(s"tpch_$name").toString
      sql(s"select $columns from range(50)").write.parquet(path)
      spark.read.parquet(path).createOrReplaceTempView(name)
    }
    val money = (name: String) => s"cast(id * 1.5 as decimal(15,2)) $name"
    val date = (name: String) => s"date_add(date'1994-01-01', cast(id * 20 as int)) $name"
    table("region", "id r_regionkey, concat('R', id) r_name")
    table("nation", "id n_nationkey, concat('N', id) n_name, id % 5 n_regionkey")
    table(
      "supplier", s"id s_suppkey, concat('S', id) s_name, id % 25 s_nationkey, ${money("s_acctbal")}, 'x' s_comment")
    table(
      "part",
      "id p_partkey, concat('P', id) p_name, concat('Brand#', id % 3) p_brand, 'STANDARD BRASS' p_type, cast(id as int) p_size, 'MED BOX' p_container"
    )
    table("partsupp", s"id ps_partkey, id % 7 ps_suppkey, cast(id as int) ps_availqty, ${money("ps_supplycost")}")
    table("customer",
      s"id c_custkey, concat('C', id) c_name, id % 25 c_nationkey, concat('13-', id) c_phone, ${money("c_acctbal")}, 'BUILDING' c_mktsegment")
    table(
      "tpch_orders",
      s"id o_orderkey, id % 20 o_custkey, 'F' o_orderstatus, ${money("o_totalprice")}, ${date("o_orderdate")}, '1-URGENT' o_orderpriority, 'special' o_comment"
    )
    table(
      "lineitem",
      s"id % 40 l_orderkey, id % 30 l_partkey, id % 7 l_suppkey, ${money("l_quantity")}, ${money(
          "l_extendedprice")}, ${money("l_discount")}, ${money("l_tax")}, 'R' l_returnflag, 'O' l_linestatus, ${date(
          "l_shipdate")}, ${date("l_commitdate")}, ${date("l_receiptdate")}, 'MAIL' l_shipmode, 'NONE' l_shipinstruct"
    )
  }

  private val queries = Seq(
    1 -> "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), count(*) from lineitem where l_shipdate <= date '1998-12-01' - interval 90 day group by l_returnflag, l_linestatus order by 1, 2",
    2 -> "select s_acctbal, s_name, n_name, p_partkey from part, supplier, partsupp, nation, region where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'R1' and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'R1')",
    4 -> "select o_orderpriority, count(*) from tpch_orders where o_orderdate >= date '1994-07-01' and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate) group by o_orderpriority order by 1",
    5 -> "select n_name, sum(l_extendedprice * (1 - l_discount)) from customer, tpch_orders, lineitem, supplier, nation, region where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey group by n_name order by 2 desc",
    7 -> "select supp, cust, y, sum(v) from (select n1.n_name supp, n2.n_name cust, year(l_shipdate) y, l_extendedprice * (1 - l_discount) v from supplier, lineitem, tpch_orders, customer, nation n1, nation n2 where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey and ((n1.n_name = 'N1' and n2.n_name = 'N2') or (n1.n_name = 'N2' and n2.n_name = 'N1'))) group by supp, cust, y",
    8 -> "select y, sum(case when nation = 'N1' then v else 0 end) / sum(v) from (select year(o_orderdate) y, l_extendedprice v, n2.n_name nation from part, supplier, lineitem, tpch_orders, customer, nation n1, nation n2, region where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and s_nationkey = n2.n_nationkey) group by y",
    11 -> "select ps_partkey, sum(ps_supplycost * ps_availqty) v from partsupp, supplier where ps_suppkey = s_suppkey group by ps_partkey having sum(ps_supplycost * ps_availqty) > (select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier where ps_suppkey = s_suppkey)",
    13 -> "select c, count(*) from (select c_custkey, count(o_orderkey) c from customer left outer join tpch_orders on c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) group by c",
    15 -> "with revenue as (select l_suppkey n, sum(l_extendedprice * (1 - l_discount)) t from lineitem group by l_suppkey) select s_suppkey, t from supplier, revenue where s_suppkey = n and t = (select max(t) from revenue)",
    16 -> "select p_brand, count(distinct ps_suppkey) from partsupp, part where p_partkey = ps_partkey and p_brand <> 'Brand#1' and p_size in (49, 14, 23, 45, 19, 3, 36, 9) and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Complaints%') group by p_brand",
    17 -> "select sum(l_extendedprice) / 7.0 from lineitem, part where p_partkey = l_partkey and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)",
    18 -> "select c_name, o_orderkey, sum(l_quantity) from customer, tpch_orders, lineitem where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 30) and c_custkey = o_custkey and o_orderkey = l_orderkey group by c_name, o_orderkey",
    19 -> "select sum(l_extendedprice) from lineitem, part where (p_partkey = l_partkey and p_brand = 'Brand#1' and l_quantity between 1 and 11) or (p_partkey = l_partkey and p_brand = 'Brand#2' and l_shipmode in ('AIR', 'MAIL'))",
    20 -> "select s_name from supplier, nation where s_suppkey in (select ps_suppkey from partsupp where ps_partkey in (select p_partkey from part where p_name like 'P1%') and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem where l_partkey = ps_partkey and l_suppkey = ps_suppkey)) and s_nationkey = n_nationkey",
    21 -> "select s_name, count(*) from supplier, lineitem l1, tpch_orders, nation where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and l1.l_receiptdate > l1.l_commitdate and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey) and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate) and s_nationkey = n_nationkey group by s_name",
    22 -> "select code, count(*), sum(c_acctbal) from (select substring(c_phone, 1, 2) code, c_acctbal from customer where substring(c_phone, 1, 2) in ('13', '31') and c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00) and not exists (select * from tpch_orders where o_custkey = c_custkey)) group by code"
  )

  queries.foreach { case (number, text) =>
    test(s"query $number is signed from root to leaves, and so again") {
      tables
      val signed = sign(sql(text))
      val refused = signed.nodes.filter(_.signature.isLeft)
      assert(refused.isEmpty, refused.map(n => n.signature.left.toOption -> n.plan.nodeName).mkString("\n"))
      assertEquals(sign(sql(text)).nodes.map(_.signature), signed.nodes.map(_.signature))
    }
  }
}
