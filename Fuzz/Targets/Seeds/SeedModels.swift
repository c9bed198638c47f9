internal import ManagedObjectModel
internal import Platform

/// The models that seeds are of, in two versions.
enum SeedModels {
  /// A model source with every kind of attribute, inheritance, indexes, constraints, fetch requests and configurations.
  static let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" \
    systemVersion="23B81" minimumToolsVersion="Automatic" sourceLanguage="Swift" userDefinedModelVersionIdentifier="1">
        <entity name="Vehicle" representedClassName="Vehicle" isAbstract="YES" syncable="YES">
            <attribute name="plate" attributeType="String" minValueString="3" maxValueString="12" \
    regularExpressionString="[A-Z0-9 ]+"/>
            <attribute name="built" optional="YES" attributeType="Date" defaultDateTimeInterval="600000000"/>
            <attribute name="key" optional="YES" attributeType="UUID"/>
            <relationship name="owner" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Person" \
    inverseName="vehicles" inverseEntity="Person"/>
            <fetchIndex name="byPlate">
                <fetchIndexElement property="plate" type="Binary" order="ascending"/>
                <fetchIndexElement expression="plate" type="Binary" order="descending"/>
            </fetchIndex>
            <uniquenessConstraints>
                <uniquenessConstraint><constraint value="plate"/></uniquenessConstraint>
            </uniquenessConstraints>
            <userInfo><entry key="team" value="cars &amp; bikes"/></userInfo>
        </entity>
        <entity name="Car" parentEntity="Vehicle" elementID="Automobile" versionHashModifier="m1">
            <attribute name="doors" attributeType="Integer 16" minValueString="1" defaultValueString="4"/>
            <attribute name="miles" optional="YES" attributeType="Integer 64" defaultValueString="-1"/>
            <attribute name="price" attributeType="Decimal" defaultValueString="-12.50"/>
            <attribute name="weight" optional="YES" attributeType="Double" defaultValueString="0.5"/>
            <attribute name="electric" attributeType="Boolean" defaultValueString="YES"/>
            <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
            <attribute name="page" optional="YES" attributeType="URI"/>
            <attribute name="paint" optional="YES" attributeType="Transformable" valueTransformerName="Paint"/>
        </entity>
        <entity name="Person">
            <attribute name="name" optional="YES" attributeType="String"/>
            <attribute name="loud" optional="YES" attributeType="String" derived="YES" \
    derivationExpression="uppercase:(name)"/>
            <relationship name="vehicles" optional="YES" toMany="YES" deletionRule="Cascade" \
    destinationEntity="Vehicle" inverseName="owner" inverseEntity="Vehicle"/>
            <relationship name="friends" optional="YES" toMany="YES" ordered="YES" deletionRule="Nullify" \
    destinationEntity="Person" inverseName="friends" inverseEntity="Person"/>
            <fetchedProperty name="namesakes" optional="YES">
                <fetchRequest name="fetchedPropertyFetchRequest" entity="Person" predicateString="name == $FETCH_SOURCE.name"/>
            </fetchedProperty>
        </entity>
        <fetchRequest name="New" entity="Car" predicateString="built &gt; 5 AND owner.name CONTAINS[cd] &quot;x&quot;"/>
        <configuration name="Cloud"><memberEntity name="Person"/></configuration>
    </model>
    """

  /// The second version: a renamed attribute, and one of another type.
  static let changedSource = source.replacing("name=\"miles\"", with: "name=\"distance\" elementID=\"miles\"")
    .replacing("\"weight\" optional=\"YES\" attributeType=\"Double\"", with: "\"weight\" attributeType=\"Float\"")

  static var garage: ManagedObjectModel {
    get throws(ModelError) { try ManagedObjectModel(source: Array(source.utf8)) }
  }

  private static let loaded: Result<ModelBundle, FuzzFailure> = {
    do {
      let models = [source, changedSource]
      let versions = try models.enumerated().map { number, text in
        let model = try ManagedObjectModel(source: Array(text.utf8))
        return ModelVersion(name: "V\(number + 1)", model: model, isCurrent: number == 1)
      }
      guard let bundle = ModelBundle(name: "Garage", versions: versions) else {
        return .failure(FuzzFailure("the example has no versions"))
      }
      return .success(bundle)
    } catch {
      return .failure(FuzzFailure("the example cannot be read: \(error)"))
    }
  }()

  /// Both versions.
  static func bundle() throws(FuzzFailure) -> ModelBundle { try loaded.get() }

  /// A mapping file between both versions.
  static let mapping = """
    {"format": 1, "name": "Garage", "source": "V1", "destination": "V2", "rest": "infer",
     "entities": [
       {"source": "Car", "destination": "Car", "filter": "doors > 1 AND plate IS NOT NULL",
        "attributes": {"weight": "coalesce(CAST(weight AS REAL), 0.5) * 2", "distance": {"constant": 7},
                       "page": {"null": true}},
        "relationships": {"owner": {"madeBy": "PersonToPerson"}}},
       {"name": "PersonToPerson", "source": "Person", "destination": "Person",
        "attributes": {"name": "upper(substr(name, 1, 20)) || '\\u00e9'"}, "userInfo": {"a": "b"}, "policy": "P"}],
     "remove": []}
    """

  /// Predicates and expressions of many kinds.
  static let predicates = [
    "name == 'x' AND age > 5 OR NOT (a.b.c IN {1, 2.5, \"t\"})", "SUBQUERY(friends, $x, $x.age > 3).@count > 0",
    "ANY friends.name CONTAINS[cd] $A", "a BETWEEN {1, 10} && b LIKE 'x*'", "FUNCTION(a, 'sum:', b) + 3 ** -2",
    "TERNARY(a == nil, 1, 0)", "CAST(a, 'NSDate') > now()", "TRUEPREDICATE", "name MATCHES '.*'",
    "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"A\", \"TRUEPREDICATE\"), "
      + "$manager.sourceContext, NO)",
    "sum:(vehicles.price)", "canonical:(name)", "(((((1)))))", "%K == %@", "a[FIRST] == b[SIZE]",
  ]

  /// An archive with a predicate in it.
  static func archivedPredicates() throws(FileError) -> [FuzzSeed] {
    var seeds: [FuzzSeed] = []
    for (number, text) in predicates.enumerated() {
      var writer = KeyedArchiveWriter()
      if let predicate = FormatParser.predicate(text) {
        let root = ArchivedPredicateWriter.add(predicate, to: &writer)
        seeds.append(FuzzSeed("predicate-\(number)", try writer.bytes(root: root)))
      } else if let expression = FormatParser.expression(text) {
        let root = ArchivedPredicateWriter.add(expression, to: &writer)
        seeds.append(FuzzSeed("expression-\(number)", try writer.bytes(root: root)))
      }
    }
    return seeds
  }

  /// A property list with values of every kind.
  static let list: PropertyList = .dictionary([
    "text": .string("plain"), "umlaut": .string("größer 🚢"), "long": .string(String(repeating: "x", count: 80)),
    "small": .integer(7), "negative": .integer(-1), "most": .integer(.max), "beyond": .unsigned(.max),
    "half": .real(0.5), "date": .date(600_000_000.25), "data": .data([0, 1, 255]), "yes": .boolean(true),
    "list": .array([.integer(1), .string("plain"), .array([]), .dictionary([:]), .uid(3)]),
  ])

  /// A property list as XML.
  static let xmlList = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict><key>a</key><string>x &amp; &#x1F6A2;<![CDATA[<y>]]></string><key>n</key>
    <integer>-12</integer><key>r</key><real>1.5</real><key>d</key><date>2026-01-01T00:00:00Z</date><key>b</key>
    <data>AAEC/w==</data><key>l</key><array><true/><false/><dict/></array><!-- end --></dict></plist>
    """

  /// A receipt.
  static let receipt = """
    {"format":"lazaret-quarantine-receipt","version":1,"id":"2026-11-21-10-11-12","date":"2026-11-21T10:11:12Z",
     "reason":{"code":"incompatible","words":"it does not fit"},"error":{"coreData":134100,"sqlite":11},
     "originalPath":"/Stores/App.sqlite","files":[{"part":"main","name":"2026-11-21-10-11-12.sqlite",
     "originalPath":{"text":"/Stores/App.sqlite","bytes":"L1N0b3Jlcw=="},"bytes":4096,"sha256":"00"},
     {"part":"wal","name":"2026-11-21-10-11-12.sqlite-wal","originalPath":"/Stores/App.sqlite-wal","bytes":32,
     "sha256":"00"}],
     "model":{"version":"V1","identifiers":["1"],"checksum":"AA=="},
     "entities":[{"name":"Car","table":"ZCAR","rows":3}],
     "versions":{"app":"1","library":"1","sqlite":"3","storeWrittenBySQLite":"3","operatingSystem":"Linux"},
     "released":{"date":"2026-11-22T10:11:12Z","path":"/Stores/App.sqlite"}}
    """
}
