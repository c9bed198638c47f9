extension FuzzTarget {
  /// Words that inputs are made of, for a fuzzer's dictionary.
  package var dictionary: [[UInt8]] {
    switch self {
    case .page, .record, .database, .examination, .salvage, .rebuild, .scrub:
      [
        [0x0D, 0, 0, 0], [0x05, 0, 0, 0], [0x0A, 0, 0, 0], [0x02, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0x81, 0x80, 0],
      ]
        + Self.longNumbers + Self.words("SQLite format 3\u{0}", "CREATE TABLE ", "ZCAR", "Z_PK", "Z_METADATA", "table")
    case .log: [[0x37, 0x7F, 0x06, 0x82], [0x37, 0x7F, 0x06, 0x83], [0, 0x2D, 0xE2, 0x18]] + Self.longNumbers
    case .journal: [[0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7], [0, 0, 2, 0], [0, 0, 4, 0]] + Self.longNumbers
    case .schema:
      Self.words(
        "CREATE", "TABLE", "INDEX", "PRIMARY KEY", "WITHOUT ROWID", "STRICT", "COLLATE", "DEFAULT", "GENERATED ALWAYS",
        "AS (", "VIRTUAL", "STORED", "CHECK (", "CONSTRAINT", "REFERENCES", "ON CONFLICT", "WHERE", "--", "/*", "*/",
        "x'", "''", "\"", "[", "]", "`")
    case .propertyList, .archive, .metadata, .compiledModel, .editorModel:
      [[0xDF, 0x10], [0xAF, 0x11], [0x5F, 0x13], [0x4F, 0x13], [0x80, 0], [0x81, 0, 0]] + Self.longNumbers
        + Self.words(
          "bplist00", "$objects", "$top", "$archiver", "$class", "NS.objects", "NS.keys", "NSExpressionType",
          "NSPredicateOperator", "NSArguments", "NSOperand", "NSKeyPath", "NSCollection", "<plist", "<dict>", "<key>")
    case .xml:
      Self.words(
        "<?xml version=\"1.0\"?>", "<!DOCTYPE", "<![CDATA[", "]]>", "<!--", "-->", "&#x", "&amp;", "<!ENTITY", "/>",
        "xmlns:", "encoding=\"UTF-16\"")
    case .predicate:
      Self.words(
        "SUBQUERY(", "FUNCTION(", "TERNARY(", "CAST(", "FETCH(", "BETWEEN", "CONTAINS[cd]", "BEGINSWITH", "MATCHES",
        "ANY ", "NOT ", " AND ", " OR ", "$x", "@count", "{", "}", "**", "==", "nil", "%@", "[FIRST]")
    case .modelSource:
      Self.words(
        "<entity ", "<attribute ", "<relationship ", "<fetchIndex ", "<fetchIndexElement ", "<uniquenessConstraint>",
        "<fetchedProperty ", "<configuration ", "<compositeType ", "attributeType=\"", "Integer 16", "Composite",
        "Transformable", "toMany=\"YES\"", "parentEntity=\"", "destinationEntity=\"", "inverseName=\"", "elementID=\"",
        "isAbstract=\"YES\"", "derivationExpression=\"", "defaultValueString=\"")
    case .mappingModel:
      Self.words(
        "<object type=\"", "XDDEVENTITYMAPPING", "XDDEVATTRIBUTEMAPPING", "XDDEVRELATIONSHIPMAPPING",
        "XDDEVMAPPINGMODEL", "<attribute name=\"", "<relationship name=\"", "idrefs=\"", "valueexpressiondata",
        "NSEntityMappings", "NSAttributeMappings", "NSRelationshipMappings", "NSSourceEntityName", "NSMappingType",
        "NSValueExpression", "NSDestinationPropertyName", "NSEntityMapping", "NSPropertyMapping")
    case .mappingFile:
      Self.words(
        "\"source\"", "\"destination\"", "\"entities\"", "\"attributes\"", "\"relationships\"", "\"filter\"",
        "\"rest\"",
        "\"remove\"", "\"madeBy\"", "\"through\"", "\"constant\"", "{\"null\": true}", "\"policy\"", "\\u0000", "CAST(",
        "1e999", "coalesce(", "CASE WHEN")
    case .receipt: Self.words("\"files\"", "\"part\"", "9223372036854775807", "-1", "null", "\\ud800", "1e400", "[[[[")
    case .recoveryKit: [Array("LazaKit\n\u{1}".utf8), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]]
    case .request:
      Self.words(
        "%2e", "%2f", "%00", "%5c", "..", "//", "\r\n", "Range: bytes=", "Content-Type: multipart/form-data; boundary=",
        "Content-Length: ", "Transfer-Encoding: chunked", "Cookie: ", "If-Range: ",
        "Content-Disposition: form-data; name=\"")
    case .tar, .bag:
      Self.words(
        "ustar\u{0}00", "data/", "bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt", "../",
        "30 path=", "30 linkpath=", "20 size=", "BagIt-Version: 1.0", "Lazaret-Bundle-Version: 1", "Payload-Oxum: ",
        "%0A", "%25", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}")
    case .age, .ageHeader, .ageArmor, .agePayload:
      Self.words(
        "age-encryption.org/v1\n", "-> X25519 ", "-> scrypt ", "--- ", "-----BEGIN AGE ENCRYPTED FILE-----\n",
        "-----END AGE ENCRYPTED FILE-----", "\r\n", "==")
    case .upload:
      Self.words(
        "filename ", "sha256 ", "https://", "http://127.0.0.1", "//", "@", "\\", "%2f", ", 06 Nov 1994 08:49:37 GMT",
        "\"id\"", "\"bytes\"", "\"sha256\"", "9223372036854775807", "?", "#", "[::1]")
    case .modelArchive: [[0, 1, 0, 1, 0, 5], [0, 20, 1, 2, 16]]
    }
  }

  private static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }

  private static let longNumbers: [[UInt8]] = [
    [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    [0x80, 0, 0, 0, 0, 0, 0, 0], [0x7F, 0xFF, 0xFF, 0xFF], [0x80, 0, 0, 0], [0, 0, 0, 1],
  ]

  /// The dictionary as libFuzzer reads it: one quoted word on each line.
  package var dictionaryText: String {
    let digits = Array("0123456789abcdef")
    return dictionary.map { word in
      let text = word.map { byte in "\\x\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])" }
      return "\"\(text.joined())\"\n"
    }.joined()
  }
}
