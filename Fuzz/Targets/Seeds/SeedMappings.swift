internal import Foundation
internal import ManagedObjectModel
internal import Platform

/// Mapping models of Core Data's between both versions of the example model.
enum SeedMappings {
  private static let attributes = [("plate", "$source.plate"), ("distance", "$source.miles"), ("doors", "4 + 1")]

  private static let owner =
    "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"PersonToPerson\", "
    + "$source.owner)"

  /// A compiled mapping model, a `.cdm`.
  static func compiled() throws -> [UInt8] {
    let bundle = try SeedModels.bundle()
    var archive = KeyedArchiveWriter()
    var mappings: [KeyedArchiveWriter.Reference] = []
    for name in ["Car", "Person"] {
      var fields: [String: PropertyList] = ["NSMappingType": .integer(4)]
      fields["NSMappingName"] = archive.string("\(name)To\(name)").value
      for (side, version) in zip(["Source", "Destination"], bundle.versions) {
        fields["NS\(side)EntityName"] = archive.string(name).value
        guard let hash = version.versionHashes[name] else { continue }
        fields["NS\(side)EntityVersionHash"] = archive.value(.data(hash.bytes)).value
      }
      let fetch = ModelExpression.fetch(
        request: .method(
          .variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:",
          [.constant(.string(name)), .constant(.string("TRUEPREDICATE"))]),
        context: .keyPathOf(.variable("manager"), "sourceContext"), isCountOnly: false)
      fields["NSSourceExpression"] = ArchivedPredicateWriter.add(fetch, to: &archive).value
      let own = name == "Car" ? attributes.map { property($0.0, $0.1, &archive) } : []
      let relationships = name == "Car" ? [property("owner", owner, &archive)] : []
      fields["NSAttributeMappings"] = archive.array(own).value
      fields["NSRelationshipMappings"] = archive.array(relationships).value
      mappings.append(archive.add(classes: ["NSEntityMapping", "NSObject"], fields))
    }
    let list = archive.array(mappings)
    let root = archive.add(classes: ["NSMappingModel", "NSObject"], ["NSEntityMappings": list.value])
    return try archive.bytes(root: root)
  }

  private static func property(
    _ name: String, _ text: String, _ archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    let value = FormatParser.expression(text).map { ArchivedPredicateWriter.add($0, to: &archive) } ?? .null
    return archive.add(
      classes: ["NSPropertyMapping", "NSObject"],
      ["NSDestinationPropertyName": archive.string(name).value, "NSValueExpression": value.value])
  }

  /// The source of a mapping model, an `xcmapping.xml`.
  static func source() throws -> String {
    var objects = ""
    for (number, (name, text)) in attributes.enumerated() {
      guard let expression = FormatParser.expression(text) else { continue }
      var archive = KeyedArchiveWriter()
      let root = ArchivedPredicateWriter.add(expression, to: &archive)
      let value = Data(try archive.bytes(root: root)).base64EncodedString()
      objects += """
        <object type="XDDEVATTRIBUTEMAPPING" id="z10\(number)"><attribute name="name" type="string">\(name)</attribute>
        <attribute name="valueexpressiondata" type="binary">\(value)</attribute>
        <relationship name="entitymapping" type="1/1" destination="XDDEVENTITYMAPPING" idrefs="z2"></relationship>
        </object>

        """
    }
    return """
      <?xml version="1.0" standalone="yes"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">
      <database><databaseInfo><version>134481920</version><nextObjectID>200</nextObjectID></databaseInfo>
      <object type="XDDEVMAPPINGMODEL" id="z1">
      <attribute name="sourcemodelpath" type="string">Garage.xcdatamodeld/V1.xcdatamodel</attribute>
      <attribute name="destinationmodelpath" type="string">Garage.xcdatamodeld/V2.xcdatamodel</attribute>
      <relationship name="entitymappings" type="0/0" destination="XDDEVENTITYMAPPING" idrefs="z2 z3"></relationship>
      </object>
      <object type="XDDEVENTITYMAPPING" id="z2"><attribute name="name" type="string">CarToCar</attribute>
      <attribute name="sourcename" type="string">Car</attribute>
      <attribute name="destinationname" type="string">Car</attribute>
      <attribute name="sourcefilterpredicatestring" type="string">doors &gt; 1</attribute>
      <attribute name="mappingtypename" type="string">Undefined</attribute>
      <attribute name="mappingnumber" type="int16">1</attribute>
      <relationship name="attributemappings" type="0/0" destination="XDDEVATTRIBUTEMAPPING" idrefs="z100 z101 z102">
      </relationship></object>
      <object type="XDDEVENTITYMAPPING" id="z3"><attribute name="sourcename" type="string">Person</attribute>
      <attribute name="destinationname" type="string">Person</attribute>
      <attribute name="mappingtypename" type="string">Undefined</attribute></object>
      \(objects)</database>
      """
  }
}
