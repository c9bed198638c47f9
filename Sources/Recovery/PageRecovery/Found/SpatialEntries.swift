internal import PersistentStore

/// The entries of an R-tree as its nodes have them, read by SQLite itself (sqlite.org/rtree.html, "The Shadow Tables").
struct SpatialEntries {
  /// The database that the tables are in.
  let schema: String

  /// The name of the R-tree.
  let name: String

  /// How many coordinates an entry has.
  let coordinates: Int

  /// How many other columns it has.
  let others: Int

  let areIntegers: Bool

  /// A selection of the entries that a leaf has and the list of them knows: key, coordinates, other columns.
  var selection: String {
    let cell = "4+i*\(8 + 4 * coordinates)"
    let numbers = (0..<coordinates).map { "\(Self.number(at: "\(cell)+\(8 + 4 * $0)")) AS u\($0)" }
    let values = (0..<coordinates).map { place in
      let bits = "u\(place)"
      // A number of four bytes: with a sign, or IEEE 754's.
      return areIntegers
        ? "\(bits)-(\(bits)>>31)*4294967296"
        : "(SELECT v*((\(bits)&8388607)+(((\(bits)>>23)&255)>0)*8388608)*(1-2*(\(bits)>>31)) FROM p "
          + "WHERE e=max((\(bits)>>23)&255,1))"
    }
    let rows = "\(schema).\(SQLText.quotedIdentifier(name + "_rowid"))"
    let nodes = "\(schema).\(SQLText.quotedIdentifier(name + "_node"))"
    let high = Self.number(at: cell)
    return """
      WITH RECURSIVE p(e,v) AS (VALUES(1,1.401298464324817e-45) UNION ALL SELECT e+1,v*2 FROM p WHERE e<254),
      n(h,i,c) AS (
        SELECT h,0,min(\(Self.byte(at: "2"))*256+\(Self.byte(at: "3")),(length(h)/2-4)/\(8 + 4 * coordinates))
        FROM (SELECT hex(data) AS h FROM \(nodes) WHERE nodeno IN (SELECT nodeno FROM \(rows)))
        UNION ALL SELECT h,i+1,c FROM n WHERE i+1<c),
      k AS MATERIALIZED (
        SELECT (\(high)-(\(high)>>31)*4294967296)*4294967296+\(Self.number(at: "\(cell)+4")) AS id,
        \(numbers.joined(separator: ",")) FROM n WHERE i<c)
      SELECT k.id,\((values + (0..<others).map { "r.a\($0)" }).joined(separator: ",")) FROM k JOIN \(rows) AS r ON r.rowid=k.id
      """
  }

  private static func number(at offset: String) -> String {
    let bytes = (0..<4).map { "\(byte(at: "\(offset)+\($0)"))*\(1 << (24 - 8 * $0))" }
    return "(\(bytes.joined(separator: "+")))"
  }

  /// A byte of the node, of which `h` has the hexadecimal digits.
  private static func byte(at offset: String) -> String {
    let digits = "instr('0123456789ABCDEF',substr(h,(\(offset))*2+"
    return "((\(digits)1,1))-1)*16+\(digits)2,1))-1)"
  }
}
