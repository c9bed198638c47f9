import Foundation
import ManagedObjectModel
import TestSupport
import Testing

@Suite struct ModelPresentationTests {
  let version: ModelVersion
  let bundle: ModelBundle

  init() throws {
    let model = try ManagedObjectModel(source: Array(garageSource.utf8))
    version = ModelVersion(name: "Garage 2", model: model, isCurrent: true)
    bundle = try #require(
      ModelBundle(
        name: "Garage",
        versions: [
          ModelVersion(name: "Garage", model: ManagedObjectModel(entities: [Entity(name: "A")]), isCurrent: false),
          version,
        ]))
  }

  @Test func showsAModel() {
    let text = ModelListing(bundle).text
    #expect(text == garageListing)
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
  }

  @Test func keepsToTheWidth() {
    #expect(ModelListing(bundle, width: 60).lines.filter { $0.count > 60 }.count <= 4)
  }

  @Test func showsNamesSafely() throws {
    let model = ManagedObjectModel(entities: [Entity(name: "A\u{1B}[31m\n", userInfo: ["k": "\u{7}"])])
    let text = ModelListing(ModelVersion(name: "\u{1B}", model: model, isCurrent: true)).text
    #expect(!text.contains("\u{1B}") && !text.contains("\u{7}"))
  }

  @Test func givesHashesAsJSON() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let data = try encoder.encode(ModelHashesJSON(bundle))
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let versions = try #require(object["versions"] as? [[String: Any]])
    #expect(versions.map { $0["name"] as? String } == ["Garage", "Garage 2"])
    #expect(versions.map { $0["current"] as? Bool } == [false, true])
    #expect(versions[1]["checksum"] as? String == version.checksum)
    let entities = try #require(versions[1]["entities"] as? [String: String])
    #expect(entities["Car"] == version.versionHashes["Car"]?.hex)
    #expect(entities.count == 5)
    #expect(try JSONDecoder().decode(ModelHashesJSON.self, from: data) == ModelHashesJSON(bundle))
  }

  @Test func givesAModelAsJSON() throws {
    let json = ModelJSON(bundle)
    let data = try JSONEncoder().encode(json)
    #expect(try JSONDecoder().decode(ModelJSON.self, from: data) == json)
    let car = try #require(json.versions[1].entities.first { $0.name == "Car" })
    #expect(car.parent == "Vehicle" && car.renamingIdentifier == "Automobile")
    #expect(car.attributes.first { $0.name == "price" }?.default == "-12.50")
    #expect(car.attributes.first { $0.name == "address" }?.elements?.map(\.name) == ["city", "place"])
    #expect(car.relationships.map(\.deleteRule) == ["cascade"])
    #expect(car.fetchedProperties.map(\.name) == ["similar"])
    #expect(car.indexes.map { $0.elements.map(\.property) } == [["doors", "miles"]])
    #expect(json.unreadableVersions == nil)
  }
}

private let garageListing = """
  Model Garage: 2 versions
    Garage                      1 entity     DHRWepD/BOBiIrm2M+eY1MkGa5D11wjKNDoG8ejWZE0=
    Garage 2                    5 entities   LYciAGUBVwwX4vwFmBYu+XuElvDHqaCFUkTCtgAdpEE=  current

  Version Garage 2 (current), identifier garage-1

  Person                                                                                  f73d0cfa3693
    name      String = "nobody"
    favorite  → Car (no inverse), no action
    friends   →→ Person? (friends), nullify
    vehicles  →→ Vehicle? (owner), deny

  Trip                                                                                    ab513624d8ea
    length  Double, encrypted in the cloud
    car     → Car (trips), nullify

  Vehicle (abstract, class VehicleObject)                                                 42323c086b2b
    built  Date? = 600000000 s since 2001
    key    UUID?
    plate  String, 3 to 12, matches [A-Z0-9 ]+, in Spotlight
    owner  → Person? (vehicles), nullify
    unique (plate)
    unique (key, built)
    index byPlateIndex (plate, built descending)
    index recent (doors + 1) where built > 5
    info team = cars & bikes

    Car (is a Vehicle, was Automobile, hash modifier m1)                                  56e82555444f
      address     Composite? Address
        .city     String?
        .place    Composite? Place
          .latitude  Double?
      doors       Integer 16 = 4, 1 to 7
      electric    Boolean = YES
      load        Float? = 2
      miles       Integer 64? = -1
      number      String?, kept in history, hash modifier n1
      page        URI? = https://example.com/?a=1&b=2
      paint       Transformable?, class Paint, transformer PaintTransformer
      photo       Binary?, may lie beside the store, was picture
      price       Decimal = -12.50
      scratch     Undefined?, transient
      searchName  String?, derived from canonical:(number)
      tripCount   Integer 64?, derived from count:(trips)
      weight      Double? = 0.5
      wheels      Integer 32?, indexed
      trips       →→ Trip? (car), ordered, 2 to 9, cascade
      similar     fetched: Car where doors == $FETCH_SOURCE.doors AND number CONTAINS[cd] "x"
      compound index (doors, miles)

      SportsCar (is a Car)                                                                2f6c4fc3f02a
        spoiler  Boolean?

  Configuration Cloud: Person, Trip

  Fetch request Expensive: Car where price > 100 OR (NOT electric == 1)

  """
