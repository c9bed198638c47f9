/// A model source that uses every feature of the format.
let garageSource = """
  <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
  <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" \
  systemVersion="23B81" minimumToolsVersion="Automatic" sourceLanguage="Swift" userDefinedModelVersionIdentifier="garage-1">
      <entity name="Vehicle" representedClassName="VehicleObject" isAbstract="YES" syncable="YES" codeGenerationType="class">
          <attribute name="plate" attributeType="String" minValueString="3" maxValueString="12" \
  regularExpressionString="[A-Z0-9 ]+" spotlightIndexingEnabled="YES"/>
          <attribute name="built" optional="YES" attributeType="Date" defaultDateTimeInterval="600000000" \
  usesScalarValueType="NO"/>
          <attribute name="key" optional="YES" attributeType="UUID" usesScalarValueType="NO"/>
          <relationship name="owner" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Person" \
  inverseName="vehicles" inverseEntity="Person"/>
          <fetchIndex name="byPlateIndex">
              <fetchIndexElement property="plate" type="Binary" order="ascending"/>
              <fetchIndexElement property="built" type="Binary" order="descending"/>
          </fetchIndex>
          <fetchIndex name="recent" partialIndexPredicate="built &gt; 5">
              <fetchIndexElement expression="doors + 1" type="Binary" order="ascending"/>
          </fetchIndex>
          <uniquenessConstraints>
              <uniquenessConstraint><constraint value="plate"/></uniquenessConstraint>
              <uniquenessConstraint><constraint value="key"/><constraint value="built"/></uniquenessConstraint>
          </uniquenessConstraints>
          <userInfo><entry key="team" value="cars &amp; bikes"/></userInfo>
      </entity>
      <entity name="Car" representedClassName="Car" parentEntity="Vehicle" elementID="Automobile" versionHashModifier="m1">
          <attribute name="doors" attributeType="Integer 16" minValueString="1" maxValueString="7" \
  defaultValueString="4" usesScalarValueType="YES"/>
          <attribute name="miles" optional="YES" attributeType="Integer 64" defaultValueString="-1"/>
          <attribute name="wheels" optional="YES" attributeType="Integer 32" indexed="YES"/>
          <attribute name="price" attributeType="Decimal" defaultValueString="-12.50"/>
          <attribute name="weight" optional="YES" attributeType="Double" defaultValueString="0.5"/>
          <attribute name="load" optional="YES" attributeType="Float" defaultValueString="2"/>
          <attribute name="electric" attributeType="Boolean" defaultValueString="YES"/>
          <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES" \
  elementID="picture"/>
          <attribute name="page" optional="YES" attributeType="URI" defaultValueString="https://example.com/?a=1&amp;b=2"/>
          <attribute name="paint" optional="YES" attributeType="Transformable" valueTransformerName="PaintTransformer" \
  customClassName="Paint"/>
          <attribute name="scratch" optional="YES" transient="YES"/>
          <attribute name="number" optional="YES" attributeType="String" preserveAfterDeletion="YES" \
  versionHashModifier="n1" renamingIdentifier="ignored"/>
          <attribute name="tripCount" optional="YES" attributeType="Integer 64" derived="YES" \
  derivationExpression="trips.@count"/>
          <attribute name="searchName" optional="YES" attributeType="String" derived="YES" \
  derivationExpression="canonical:(number)"/>
          <attribute name="address" optional="YES" attributeType="Composite" composite="Address"/>
          <relationship name="trips" optional="YES" toMany="YES" minCount="2" maxCount="9" ordered="YES" \
  deletionRule="Cascade" destinationEntity="Trip" inverseName="car" inverseEntity="Trip"/>
          <fetchedProperty name="similar" optional="YES">
              <fetchRequest name="similar" entity="Car" \
  predicateString="doors == $FETCH_SOURCE.doors AND number CONTAINS[cd] &quot;x&quot;"/>
              <userInfo><entry key="why" value="because"/></userInfo>
          </fetchedProperty>
          <compoundIndexes><compoundIndex><index value="doors"/><index value="miles"/></compoundIndex></compoundIndexes>
      </entity>
      <entity name="SportsCar" parentEntity="Car">
          <attribute name="spoiler" optional="YES" attributeType="Boolean"/>
      </entity>
      <entity name="Person" representedClassName="Person">
          <attribute name="name" attributeType="String" defaultValueString="nobody"/>
          <relationship name="vehicles" optional="YES" toMany="YES" deletionRule="Deny" destinationEntity="Vehicle" \
  inverseName="owner" inverseEntity="Vehicle"/>
          <relationship name="friends" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Person" \
  inverseName="friends" inverseEntity="Person"/>
          <relationship name="favorite" maxCount="1" deletionRule="No Action" destinationEntity="Car"/>
      </entity>
      <entity name="Trip" representedClassName="Trip">
          <attribute name="length" attributeType="Double" allowsCloudEncryption="YES"/>
          <relationship name="car" maxCount="1" deletionRule="Nullify" destinationEntity="Car" inverseName="trips" \
  inverseEntity="Car"/>
      </entity>
      <fetchRequest name="Expensive" entity="Car" predicateString="price &gt; 100 OR NOT (electric == YES)"/>
      <configuration name="Cloud"><memberEntity name="Trip"/><memberEntity name="Person"/></configuration>
      <composite name="Address">
          <attribute name="city" optional="YES" attributeType="String"/>
          <attribute name="place" optional="YES" attributeType="Composite" composite="Place"/>
      </composite>
      <composite name="Place"><attribute name="latitude" optional="YES" attributeType="Double"/></composite>
      <elements><element name="Car" positionX="0" positionY="0" width="128" height="14"/></elements>
  </model>
  """

/// The smallest model there is.
func modelSource(_ inner: String, identifier: String = "") -> [UInt8] {
  Array("<?xml version=\"1.0\"?><model userDefinedModelVersionIdentifier=\"\(identifier)\">\(inner)</model>".utf8)
}
