import ManagedObjectModel
import TestSupport
import Testing

/// The lines of entities and properties in the XML of a version.
struct ModelSourceLinesTests {
  private let source = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
      <!-- <entity name="Car"> is not
           here -->
      <entity representedClassName="a > b" name="Car" syncable="YES">
        <attribute name="color" optional="YES"
          attributeType="String"/>
        <relationship name="owner" optional="YES" maxCount="1" destinationEntity="Person"/>
      </entity>
      <entity name="Person"/>
      <entity name='Bike'><attribute attributeType="String" name="color"/></entity>
      <elements><element name="Car" positionX="0"/></elements>
    </model>
    """

  @Test func entitiesAndPropertiesHaveTheirLines() throws {
    let folder = try TemporaryFolder()
    try folder.write(source, to: "App.xcdatamodeld/V1.xcdatamodel/contents")
    let bundle = try ModelBundle.load(path: folder.appending("App.xcdatamodeld"))
    let lines = try #require(ModelSourceLines("V1", of: bundle))
    #expect(lines.file == folder.appending("App.xcdatamodeld/V1.xcdatamodel/contents"))
    #expect(lines.line(entity: "Car", property: nil) == 5)
    #expect(lines.line(entity: "Car", property: "color") == 6)
    #expect(lines.line(entity: "Car", property: "owner") == 8)
    #expect(lines.line(entity: "Person", property: nil) == 10)
    #expect(lines.line(entity: "Bike", property: "color") == 11)
    // What a version lacks is told at its entity, and what has none at the beginning.
    #expect(lines.line(entity: "Car", property: "gone") == 5)
    #expect(lines.line(entity: "Boat", property: "name") == 1 && lines.line(entity: nil, property: nil) == 1)
    #expect(ModelSourceLines("V2", of: bundle) == nil)
    // A version by itself.
    let single = try ModelBundle.load(path: folder.appending("App.xcdatamodeld/V1.xcdatamodel"))
    #expect(ModelSourceLines("V1", of: single)?.line(entity: "Car", property: "owner") == 8)
  }
}
