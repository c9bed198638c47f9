import ManagedObjectModel
import Platform
import TestSupport
import Testing

@Suite struct ModelSourceTests {
  let model: ManagedObjectModel

  init() throws { model = try ManagedObjectModel(source: Array(garageSource.utf8)) }

  @Test func readsEntities() throws {
    #expect(Set(model.entities.keys) == ["Vehicle", "Car", "SportsCar", "Person", "Trip"])
    let vehicle = try #require(model.entity(named: "Vehicle"))
    #expect(vehicle.isAbstract)
    #expect(vehicle.className == "VehicleObject")
    #expect(vehicle.userInfo == ["team": "cars & bikes"])
    #expect(vehicle.uniquenessConstraints == [["plate"], ["key", "built"]])
    #expect(vehicle.fetchIndexes.map(\.name) == ["byPlateIndex", "recent"])
    #expect(vehicle.fetchIndexes[0].elements.map(\.isAscending) == [true, false])
    #expect(vehicle.fetchIndexes[1].elements[0].expression == "doors + 1")
    #expect(vehicle.fetchIndexes[1].partialIndexPredicate == "built > 5")
    let car = try #require(model.entity(named: "Car"))
    #expect(car.parentName == "Vehicle")
    #expect(car.renamingIdentifier == "Automobile")
    #expect(car.versionHashModifier == "m1")
    #expect(car.compoundIndexes == [["doors", "miles"]])
    #expect(model.lineage(of: "SportsCar").map(\.name) == ["SportsCar", "Car", "Vehicle"])
    #expect(model.versionIdentifiers == ["garage-1"])
    #expect(model.configurations == ["Cloud": ["Person", "Trip"]])
    #expect(model.fetchRequests["Expensive"]?.predicateFormat == "price > 100 OR (NOT electric == 1)")
  }

  @Test(arguments: [
    ("doors", AttributeType.integer16, AttributeValue.integer(4)), ("miles", .integer64, .integer(-1)),
    ("price", .decimal, .decimal("-12.50")), ("weight", .double, .real(0.5)), ("load", .float, .real(2)),
    ("electric", .boolean, .boolean(true)), ("page", .uri, .uri("https://example.com/?a=1&b=2")),
  ])
  func readsDefaults(_ name: String, _ type: AttributeType, _ value: AttributeValue) {
    let attribute = model.entity(named: "Car")?.properties[name]?.attribute
    #expect(attribute?.type == type)
    #expect(attribute?.defaultValue == value)
  }

  @Test func readsAttributes() throws {
    let car = try #require(model.entity(named: "Car")).properties.compactMapValues(\.attribute)
    #expect(car["photo"]?.allowsExternalBinaryDataStorage == true)
    #expect(car["photo"]?.traits.renamingIdentifier == "picture")
    #expect(car["paint"]?.valueClassName == "Paint")
    #expect(car["paint"]?.valueTransformerName == "PaintTransformer")
    #expect(car["scratch"]?.traits.isTransient == true)
    #expect(car["scratch"]?.type == .undefined)
    #expect(car["wheels"]?.traits.isIndexed == true)
    #expect(car["number"]?.preservesValueInHistoryOnDeletion == true)
    // The compiler ignores an XML attribute of that name.
    #expect(car["number"]?.traits.renamingIdentifier == "number")
    #expect(car["number"]?.traits.versionHashModifier == "n1")
    #expect(car["tripCount"]?.derivationExpression == "count:(trips)")
    #expect(car["tripCount"]?.traits.isReadOnly == true)
    #expect(car["searchName"]?.derivationExpression == "canonical:(number)")
    let address = try #require(car["address"])
    #expect(address.type == .composite)
    #expect(address.compositeElements.map(\.name) == ["city", "place"])
    #expect(ManagedObjectModel.leaves(of: address).map(\.name) == ["city", "latitude"])
    let vehicle = try #require(model.entity(named: "Vehicle")).properties.compactMapValues(\.attribute)
    #expect(vehicle["plate"]?.minimumValue == "3")
    #expect(vehicle["plate"]?.maximumValue == "12")
    #expect(vehicle["plate"]?.regularExpression == "[A-Z0-9 ]+")
    #expect(vehicle["plate"]?.traits.isIndexedBySpotlight == true)
    #expect(vehicle["built"]?.defaultValue == .date(600_000_000))
    #expect(model.entity(named: "Trip")?.properties["length"]?.traits.allowsCloudEncryption == true)
  }

  @Test func readsRelationships() throws {
    let trips = try #require(model.entity(named: "Car")?.properties["trips"]?.relationship)
    #expect(trips.isToMany && trips.isOrdered)
    #expect(trips.minimumCount == 2 && trips.maximumCount == 9)
    #expect(trips.deleteRule == .cascade)
    #expect(trips.inverseName == "car" && trips.inverseEntityName == "Trip")
    let person = try #require(model.entity(named: "Person")).properties.compactMapValues(\.relationship)
    #expect(person["vehicles"]?.maximumCount == 0)
    #expect(person["vehicles"]?.deleteRule == .deny)
    // A mandatory to-one relationship without a count has the least count 0.
    #expect(person["favorite"]?.minimumCount == 0)
    #expect(person["favorite"]?.deleteRule == .noAction)
    #expect(person["favorite"]?.inverseName == nil)
  }

  @Test func readsFetchedProperties() throws {
    guard case .fetchedProperty(let similar)? = model.entity(named: "Car")?.properties["similar"] else {
      Issue.record("no fetched property")
      return
    }
    #expect(similar.traits.isTransient && similar.traits.isReadOnly)
    #expect(similar.traits.userInfo == ["why": "because"])
    #expect(similar.fetchRequest?.entityName == "Car")
    #expect(similar.fetchRequest?.predicateFormat == "doors == $FETCH_SOURCE.doors AND number CONTAINS[cd] \"x\"")
  }

  @Test(arguments: [
    ("<entity name=\"A\" parentEntity=\"B\"/>", "A", nil as String?),
    ("<entity name=\"A\" parentEntity=\"A\"/>", "A", nil),
    ("<entity name=\"A\" parentEntity=\"B\"/><entity name=\"B\" parentEntity=\"A\"/>", "A", nil),
    ("<entity name=\"A\"><relationship name=\"r\" destinationEntity=\"B\"/></entity>", "A", "r"),
    ("<entity name=\"A\"><attribute name=\"a\" attributeType=\"Quaternion\"/></entity>", "A", "a"),
    ("<entity name=\"A\"/><entity name=\"A\"/>", "A", nil),
    ("<entity name=\"A\"><attribute name=\"a\"/><relationship name=\"a\" destinationEntity=\"A\"/></entity>", "A", "a"),
    ("<entity name=\"A\"><relationship name=\"r\" destinationEntity=\"A\" maxCount=\"many\"/></entity>", "A", "r"),
    ("<entity name=\"A\"><attribute name=\"a\" attributeType=\"Composite\" composite=\"C\"/></entity>", "A", nil),
  ])
  func refusesModelsThatContradictThemselves(_ inner: String, _ entity: String, _ property: String?) {
    #expect {
      try ManagedObjectModel(source: modelSource(inner))
    } throws: { error in
      guard let error = error as? ModelError else { return false }
      return error.kind == .invalid && error.entityName == entity && error.propertyName == property
        && error.detail.contains(entity)
    }
  }

  @Test func refusesCompositesThatContainThemselves() {
    let inner = """
      <entity name="A"><attribute name="a" attributeType="Composite" composite="C"/></entity>
      <composite name="C"><attribute name="c" attributeType="Composite" composite="C"/></composite>
      """
    #expect(throws: ModelError.self) { try ManagedObjectModel(source: modelSource(inner)) }
  }

  @Test func refusesCompositesThatUnfoldWithoutEnd() {
    var inner = "<entity name=\"A\"><attribute name=\"a\" attributeType=\"Composite\" composite=\"C0\"/></entity>"
    for level in 0..<15 {
      let leaf = "attributeType=\"Composite\" composite=\"C\(level + 1)\"/>"
      inner += "<composite name=\"C\(level)\">"
      for index in 0..<6 { inner += "<attribute name=\"c\(index)\" " + leaf }
      inner += "</composite>"
    }
    inner += "<composite name=\"C15\"><attribute name=\"x\" attributeType=\"String\"/></composite>"
    #expect { try ManagedObjectModel(source: modelSource(inner)) } throws: { ($0 as? ModelError)?.kind == .tooLarge }
  }

  @Test func refusesEndlessHierarchiesAtOnce() {
    let inner = (0..<20_000).map { "<entity name=\"E\($0)\" parentEntity=\"E\($0 + 1)\"/>" }.joined()
    let time = processorTime {
      #expect { try ManagedObjectModel(source: modelSource(inner + "<entity name=\"E20000\"/>")) } throws: {
        ($0 as? ModelError)?.kind == .tooLarge
      }
    }
    #expect(time < .seconds(3))
  }

  @Test(arguments: ["<plist/>", "words", "", "<model", "<!DOCTYPE a [<!ENTITY b \"c\">]><model>&b;</model>"])
  func refusesWhatIsNoModel(_ text: String) {
    #expect(throws: ModelError.self) { try ManagedObjectModel(source: Array(text.utf8)) }
  }
}
